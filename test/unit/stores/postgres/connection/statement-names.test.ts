// Statements go under names, but where a server is strange to them.

import { describe, expect, it } from 'vitest'
import type { ClientLike } from '../../../../../src/stores/postgres/connection/connection.ts'
import { StatementNames } from '../../../../../src/stores/postgres/connection/statement-names.ts'

const client = (): ClientLike => ({ query: () => Promise.reject(new Error('not asked')), release: () => undefined })

function rig() {
  let now = 1_000
  return { names: new StatementNames(() => now), pass: (ms: number) => void (now += ms) }
}

describe('names of statements', () => {
  it('are given up on the one connection that was emptied, and nowhere else', () => {
    const { names, pass } = rig()
    const [emptied, other] = [client(), client()]
    names.refused(emptied)
    names.refused(emptied)
    names.refused(emptied)
    expect([names.areAllowed(emptied), names.areAllowed(other)]).toEqual([false, true])
    pass(10 * 3_600_000)
    expect([names.areAllowed(emptied), names.areAllowed(other)]).toEqual([false, true])
  })

  it('are given up on all for a while when several connections are strange to them, and tried again ever less often', () => {
    const { names, pass } = rig()
    const strike = (): void => [client(), client(), client()].forEach((one) => names.refused(one))
    strike()
    expect(names.areAllowed(client())).toBe(false)
    pass(60_000)
    expect(names.areAllowed(client())).toBe(true)
    strike()
    pass(60_000)
    expect(names.areAllowed(client())).toBe(false)
    pass(60_000)
    expect(names.areAllowed(client())).toBe(true)
  })

  it('are kept when connections are emptied now and then', () => {
    const { names, pass } = rig()
    for (let times = 0; times < 10; times += 1) {
      names.refused(client())
      pass(40_000)
    }
    expect(names.areAllowed(client())).toBe(true)
  })
})
