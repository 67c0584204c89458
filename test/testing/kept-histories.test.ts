// Histories that older code has written, as tests of the code of today.

import { describe, expect, it } from 'vitest'
import { decider, decision } from '../../src/deciders/index.ts'
import { checkHistory, checkLaws, given } from '../../src/testing/deciders/index.ts'

type Paid = { readonly type: 'Paid'; readonly amount: number }

function till(from1: (old: { cents: number }) => Paid = ({ cents }) => ({ type: 'Paid', amount: cents / 100 })) {
  return decider('till', {
    initial: () => 0,
    evolve: (total, { amount }: Paid) => total + amount,
    decide: (_total, { amount }: { type: 'Pay'; id: string; amount: number }) => decision({ type: 'Paid', amount }),
    id: 'id',
    upcast: { Paid: { 1: from1 } },
    retired: ['Noted'],
  })
}

const kept = [
  { version: 1, event: { type: 'Paid', cents: 500 } },
  { version: 1, event: { type: 'Noted', text: 'x' } },
  { type: 'Paid', amount: 2 },
] as const

describe('a kept history', () => {
  it('IF-V2 is folded by the code of today, and gives the state', () => {
    expect(checkHistory(till(), kept)).toBe(7)
    expect(checkHistory(till(), [])).toBe(0)
  })

  it('IF-V2 fails where an event cannot be read, and names it', () => {
    const thrower = till(() => {
      throw new RangeError('no rate')
    })
    expect(() => checkHistory(thrower, kept)).toThrow(
      expect.objectContaining({
        code: 'EVENT_UNREADABLE',
        message: expect.stringContaining('Event "Paid", entry 3') as string,
      }) as Error,
    )
    expect(() => checkHistory(till(), [{ version: 7, event: { type: 'Paid' } }])).toThrow('it has version 7')
  })

  it('IF-V2 fails where an upcaster depends on the clock, on chance, or on how often it was called', () => {
    const clock = till(() => ({ type: 'Paid', amount: Date.now() }))
    expect(() => checkHistory(clock, kept)).toThrow(/breaks the law "pure" at a kept history: .*Date/)
    let calls = 0
    const counting = till(() => ({ type: 'Paid', amount: (calls += 1) }))
    expect(() => checkHistory(counting, kept)).toThrow('a second fold of it has another state')
  })

  it('IF-V2 may be what has happened to an instance in a test, beside events of today', () => {
    given(till(), kept)
      .when({ type: 'Pay', id: '1', amount: 1 })
      .then({ events: [{ type: 'Paid', amount: 1 }] })
      .thenState(8)
    checkLaws(till(), [{ type: 'Pay', id: '1', amount: 1 }])
  })
})
