// In which order a claim takes what is ready.

import { describe, expect, it } from 'vitest'
import { inClaimOrder } from '../../../../../src/core/rules/claims/claim-order.ts'

interface Ready {
  readonly id: string
  readonly type: string
  readonly priority: number
  readonly due: number
}

const selectors = ['b', 'a', 'b'].map((type, version) => ({ type, version }))
const order = (...ready: readonly Ready[]): string =>
  inClaimOrder(ready, { selectors })
    .map(({ id }) => id)
    .join(' ')
const run = (id: string, due = 0, priority = 0): Ready => ({ id, type: id.slice(0, 1), priority, due })

describe('the order of a claim', () => {
  it('is that of priority, due time and id within a type, however they come', () => {
    expect(order(run('a3', 5), run('a2', 5), run('a4', 1), run('a1', 9, 2), run('a5', 0, -1))).toBe('a1 a4 a2 a3 a5')
  })

  it('of suspects is that of their due times, whatever their priorities and types', () => {
    const suspects = [run('b1', 2, 9), run('a1', 1), run('a2', 0), run('b2', 1, 9)]
    expect(inClaimOrder(suspects, { selectors, isolated: true }).map(({ id }) => id)).toEqual(['a2', 'a1', 'b2', 'b1'])
  })

  it('goes round the types at each priority, in the order of their first names', () => {
    const urgent = [run('a1', 0, 1), run('b1', 9, 1), run('a2', 1, 1)]
    const usual = [run('a3', 0), run('a4', 1), run('a5', 2), run('b2', 7), run('b3', 8)]
    expect(order(...usual, ...urgent)).toBe('b1 a1 a2 b2 a3 b3 a4 a5')
  })

  it('of nothing is nothing', () => {
    expect(order()).toBe('')
  })
})
