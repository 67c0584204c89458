// What may be merged, and above all what may not: each refusal here is a run that would be corrupted.

import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../src/core/entry.ts'
import { mayMerge, mergeTransitions, type NextStatus, type Transition } from '../../../src/core/transition.ts'

const entry = (name: string): Draft => ({ kind: 'recorded', name, meta: null, data: '1' })

function transition(seq: number, names: string[], changes: Partial<Transition> = {}): Transition {
  return {
    id: `t${seq}`,
    runId: 'run',
    guard: { seq, lease: { session: 's', token: 1 } },
    append: names.map(entry),
    status: null,
    due: null,
    parkIf: null,
    ...changes,
  }
}

const first = transition(4, ['a', 'b'])
const second = transition(6, ['c'])

describe('mayMerge', () => {
  it('joins what follows without a gap under the same lease', () => {
    expect(mayMerge(first, second)).toBe(true)
    expect(mayMerge(first, { ...second, status: 'succeeded' })).toBe(true)
  })

  it.each([
    ['a gap', transition(7, ['c'])],
    ['an overlap', transition(5, ['c'])],
    ['the same place', transition(4, ['c'])],
    ['another run', { ...second, runId: 'other' }],
    ['another token', { ...second, guard: { seq: 6, lease: { session: 's', token: 2 } } }],
    ['another session with the same token', { ...second, guard: { seq: 6, lease: { session: 'z', token: 1 } } }],
  ])('refuses %s', (_, other) => {
    expect(mayMerge(first, other)).toBe(false)
  })

  it('refuses the wrong order', () => {
    expect(mayMerge(second, first)).toBe(false)
  })

  it.each<NextStatus>(['pending', 'waiting', 'paused', 'succeeded', 'failed', 'cancelled'])(
    'refuses anything after a transition to %s, which gives the lease away',
    (status) => {
      const parkIf = status === 'waiting' ? { inbox: 0 } : null
      expect(mayMerge({ ...first, status, parkIf }, second)).toBe(false)
      expect(mayMerge({ ...first, status, parkIf }, { ...second, append: [] })).toBe(false)
    },
  )
})

describe('mergeTransitions', () => {
  it('starts where the first does, ends as the second does, and keeps the order of the entries', () => {
    const parked = { ...second, status: 'waiting', due: { at: 9, afterMs: null }, parkIf: { inbox: 2 } } as const
    expect(mergeTransitions(first, parked)).toEqual({
      id: 't4',
      runId: 'run',
      guard: { seq: 4, lease: { session: 's', token: 1 } },
      append: ['a', 'b', 'c'].map(entry),
      status: 'waiting',
      due: { at: 9, afterMs: null },
      parkIf: { inbox: 2 },
    })
  })

  it('changes neither of the two: they may be told of a refusal one by one', () => {
    const before = structuredClone([first, second])
    mergeTransitions(first, second)
    expect([first, second]).toEqual(before)
  })

  it('refuses to do what may not be done', () => {
    const call = () => mergeTransitions({ ...first, status: 'succeeded' }, second)
    expect(call).toThrow(expect.objectContaining({ code: 'BUG' }))
  })
})
