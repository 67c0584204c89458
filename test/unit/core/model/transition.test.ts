// What may be merged, and above all what may not: each refusal here is a run that would be corrupted.

import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../../src/core/model/entry.ts'
import type { RunStatus, ControlRequest } from '../../../../src/core/model/run.ts'
import {
  assertLegal,
  endsLease,
  mayMerge,
  mergeTransitions,
  objection,
  type NextStatus,
  type Transition,
} from '../../../../src/core/model/transition.ts'

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
    undo: null,
    continues: null,
    takes: [],
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

  it('refuses anything after a transition that reaches others, and lets such a one follow', () => {
    const outbound = { starts: [], watches: [{ kind: 'run', runId: 'other' }], unwatches: [] } as const
    expect(mayMerge({ ...first, outbound }, second)).toBe(false)
    expect(mayMerge({ ...first, outbound: null }, second)).toBe(true)
    expect(mergeTransitions(first, { ...second, outbound, emptyAt: 4 })).toMatchObject({ outbound, emptyAt: 4 })
    expect(mergeTransitions({ ...first, emptyAt: 4 }, second).emptyAt).toBeUndefined()
  })

  it('refuses anything after a transition with which the run begins anew: its last entry is the input', () => {
    expect(mayMerge({ ...first, continues: { type: 'next', version: 2, feed: false } }, second)).toBe(false)
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

describe('without a lease', () => {
  const guard = (seq: number) => ({ guard: { seq, lease: null } })
  const one = transition(4, ['a', 'b'], { ...guard(4), status: 'waiting', due: { at: 9, afterMs: null } })
  const other = transition(6, ['c'], { ...guard(6), status: 'waiting', base: 7 })

  it('IF-C1 the run waits after the first, and so the second follows: what it says of the time counts', () => {
    expect(mayMerge(one, other)).toBe(true)
    const { append, due, guard: kept, base } = mergeTransitions(one, other)
    expect([append.length, due, kept, base]).toEqual([3, null, { seq: 4, lease: null }, 7])
    expect(mergeTransitions({ ...one, base: 5 }, { ...other, base: null }).base).toBe(5)
  })

  it.each([
    ['one of a holder', { ...other, guard: second.guard, status: null }],
    ['one behind another entry', { ...other, ...guard(7) }],
  ] as const)('refuses %s', (_, next) => {
    expect(mayMerge(one, next)).toBe(false)
  })

  it('refuses anything after one that ends the run, or reaches others', () => {
    expect(mayMerge({ ...one, status: 'succeeded' }, other)).toBe(false)
    expect(mayMerge({ ...one, outbound: { starts: [], watches: [], unwatches: [] } }, other)).toBe(false)
    expect(mayMerge(first, { ...second, ...guard(6) })).toBe(false)
  })

  it('a holder that ends its run settles after what came before', () => {
    const settles = { ...one, runId: 'parent' }
    expect(mergeTransitions(first, { ...second, status: 'succeeded', settles }).settles).toBe(settles)
  })
})

describe('mergeTransitions', () => {
  it('starts where the first does, ends as the second does, and keeps the order of the entries', () => {
    const parked = {
      ...second,
      status: 'waiting',
      due: { at: 9, afterMs: null },
      parkIf: { inbox: 2 },
      takes: ['m2'],
    } as const
    expect(mergeTransitions({ ...first, takes: ['m1'] }, parked)).toEqual({
      id: 't4',
      runId: 'run',
      guard: { seq: 4, lease: { session: 's', token: 1 } },
      append: ['a', 'b', 'c'].map(entry),
      status: 'waiting',
      due: { at: 9, afterMs: null },
      parkIf: { inbox: 2 },
      undo: null,
      continues: null,
      takes: ['m1', 'm2'],
      outbound: null,
      keyId: null,
      applies: null,
      feed: false,
      base: null,
      settles: null,
    })
  })

  it('says what is to be undone as the second does, and as the first does if the second says nothing', () => {
    const undoable = { ...first, undo: 'possible' } as const
    expect(mergeTransitions(undoable, second).undo).toBe('possible')
    expect(mergeTransitions(undoable, { ...second, undo: 'due' }).undo).toBe('due')
    expect(mergeTransitions(first, { ...second, undo: 'possible' }).undo).toBe('possible')
  })

  it('begins anew if the second does', () => {
    const continues = { type: 'next', version: 2, feed: true }
    expect(mergeTransitions(first, { ...second, continues }).continues).toEqual(continues)
  })

  it('changes neither of the two: they may be refused one by one', () => {
    const before = structuredClone([first, second])
    mergeTransitions(first, second)
    expect([first, second]).toEqual(before)
  })

  it('refuses to do what may not be done', () => {
    const call = () => mergeTransitions({ ...first, status: 'succeeded' }, second)
    expect(call).toThrow(expect.objectContaining({ code: 'BUG' }))
  })
})

const pauseControlRequest: ControlRequest = { kind: 'pause', reason: 'operator', note: null, at: 1 }
const cancelControlRequest: ControlRequest = { kind: 'cancel', reason: null, at: 1 }
const continues = { type: 'next', version: 2, feed: true }

describe('receive', () => {
  const every: readonly (NextStatus | null)[] = [
    null,
    'pending',
    'waiting',
    'paused',
    'cancelling',
    'succeeded',
    'failed',
    'cancelled',
  ]

  // Columns: a checkpoint, then each status in the order above. k: kept, r: released, x: refused.
  it.each<[string, RunStatus, ControlRequest | null, string]>([
    ['is running and nobody wants anything', 'running', null, 'k r r r r r r r'],
    ['is running and shall pause', 'running', pauseControlRequest, 'k k k r r r r r'],
    ['is being cancelled', 'cancelling', cancelControlRequest, 'k k k x r x x r'],
    ['is being cancelled by who took it over', 'cancelling', null, 'k k k x r x x r'],
  ])('of a run that %s', (_, status, controlRequest, expected) => {
    const answers = every.map((next) => {
      const parkIf = next === 'waiting' ? { inbox: 0 } : null
      return letterOf({ ...plain, status, controlRequest }, transition(1, ['a'], { status: next, parkIf }))
    })
    expect(answers.join(' ')).toBe(expected)
  })

  it('a message that was not seen keeps a run from resting, and nothing else', () => {
    const run = { ...plain, inbox: 1 }
    expect(letterOf(run, transition(1, ['a'], { status: 'waiting', parkIf: { inbox: 0 } }))).toBe('k')
    expect(letterOf(run, transition(1, ['a'], { status: 'waiting', parkIf: { inbox: 1 } }))).toBe('r')
    expect(letterOf(run, transition(1, ['a'], { status: 'pending' }))).toBe('r')
  })

  it.each<[string, readonly string[] | null, string]>([
    ['it wants any', null, 'k'],
    ['it wants none', [], 'r'],
    ['it wants that one', ['red'], 'k'],
    ['it wants another', ['blue'], 'r'],
  ])('a message that was not seen keeps a run from resting only if it is wanted: %s', (_, wakeNames, expected) => {
    const park = transition(1, ['a'], { status: 'waiting', parkIf: { inbox: 0, wakeNames } })
    expect(letterOf({ ...plain, inbox: 1 }, park, ['red'])).toBe(expected)
  })

  it('PQ-P1 a run that is being cancelled does not begin anew; one that shall pause does', () => {
    const anew = transition(1, ['a'], { continues })
    expect(letterOf({ ...plain, status: 'cancelling' }, anew)).toBe('x')
    expect(letterOf({ ...plain, controlRequest: pauseControlRequest }, anew)).toBe('k')
  })

  it('nothing succeeds or begins anew when the time for it is over, and what was removed has no such time', () => {
    const succeeds = transition(1, ['a'], { status: 'succeeded' })
    for (const late of [succeeds, transition(1, ['a'], { continues })]) {
      expect(objection({ ...plain, timeoutAt: 1_000 }, late, 999)).toBe(null)
      expect(objection({ ...plain, timeoutAt: 1_000 }, late, 1_000)).toBe('timed-out')
      expect(objection({ ...plain, timeoutAt: 1_000, deletedAt: 5 }, late, 1_000)).toBe(null)
    }
    for (const status of [null, 'failed', 'paused', 'pending'] as const) {
      expect(objection({ ...plain, timeoutAt: 1_000 }, transition(1, ['a'], { status }), 2_000)).toBe(null)
    }
  })

  it('a transition that obeys a control request is refused when the request is gone; one that pauses by its own will is not', () => {
    const pause = transition(1, ['a'], { status: 'paused' })
    expect(objection(plain, { ...pause, applies: 'pause' }, 0)).toBe('resumed')
    expect(objection({ ...plain, controlRequest: pauseControlRequest }, { ...pause, applies: 'pause' }, 0)).toBe(null)
    expect(objection(plain, pause, 0)).toBe(null)
    expect(objection({ ...plain, status: 'cancelling' }, { ...pause, applies: 'pause' }, 0)).toBe('cancelling')
  })
})

const plain = { status: 'running', controlRequest: null, inbox: 0, timeoutAt: null, deletedAt: null } as const

type Judged = Parameters<typeof objection>[0] & Parameters<typeof endsLease>[0]

/** k: kept, r: released, x: refused. */
function letterOf(run: Judged, given: Transition, arrived: readonly string[] = ['any']): string {
  if (objection(run, given, 0) !== null) return 'x'
  return endsLease(run, given, (_, names) => names.some((name) => arrived.includes(name))) ? 'r' : 'k'
}

const watching = { starts: [], watches: [{ kind: 'run', runId: 'other' }], unwatches: [] } as const

describe('assertLegal', () => {
  it.each<[string, Partial<Transition>]>([
    ['appends nothing', { append: [] }],
    ['reaches others without an entry', { append: [], status: 'waiting', parkIf: { inbox: 0 }, outbound: watching }],
    ['ends without an entry', { append: [], status: 'succeeded' }],
    ['parks without saying what it has seen', { status: 'waiting' }],
    ['says what it has seen without parking', { parkIf: { inbox: 0 } }],
    ['begins anew without an input', { continues }],
  ])('blames a holder that %s', (_, changes) => {
    const call = () => assertLegal('running', transition(1, ['a'], changes))
    expect(call).toThrow(expect.objectContaining({ code: 'BUG' }))
  })

  it('does not blame a holder that has not noticed a cancellation', () => {
    for (const status of ['succeeded', 'failed', 'paused', 'pending', 'cancelled', 'cancelling', null] as const) {
      expect(() => assertLegal('cancelling', transition(1, ['a'], { status }))).not.toThrow()
    }
  })
})
