// What may be merged, and above all what may not: each refusal here is a run that would be corrupted.

import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../src/core/entry.ts'
import type { RunStatus, Wish } from '../../../src/core/run.ts'
import {
  assertLegal,
  mayMerge,
  mergeTransitions,
  receive,
  type NextStatus,
  type Transition,
} from '../../../src/core/transition.ts'

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
    const reach = { starts: [], watches: [{ kind: 'run', runId: 'other' }], unwatches: [] } as const
    expect(mayMerge({ ...first, reach }, second)).toBe(false)
    expect(mayMerge({ ...first, reach: null }, second)).toBe(true)
    expect(mergeTransitions(first, { ...second, reach, emptyAt: 4 })).toMatchObject({ reach, emptyAt: 4 })
    expect(mergeTransitions({ ...first, emptyAt: 4 }, second).emptyAt).toBeUndefined()
  })

  it('refuses anything after a transition with which the run begins anew: its last entry is the input', () => {
    expect(mayMerge({ ...first, continues: { type: 'next', version: 2 } }, second)).toBe(false)
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
      reach: null,
    })
  })

  it('says what is to be undone as the second does, and as the first does if the second says nothing', () => {
    const undoable = { ...first, undo: 'possible' } as const
    expect(mergeTransitions(undoable, second).undo).toBe('possible')
    expect(mergeTransitions(undoable, { ...second, undo: 'due' }).undo).toBe('due')
    expect(mergeTransitions(first, { ...second, undo: 'possible' }).undo).toBe('possible')
  })

  it('begins anew if the second does', () => {
    const continues = { type: 'next', version: 2 }
    expect(mergeTransitions(first, { ...second, continues }).continues).toEqual(continues)
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

const pauseWish: Wish = { kind: 'pause', reason: 'operator', note: null, at: 1 }
const cancelWish: Wish = { kind: 'cancel', reason: null, at: 1 }
const continues = { type: 'next', version: 2 }

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
  it.each<[string, RunStatus, Wish | null, string]>([
    ['is running and nobody wants anything', 'running', null, 'k r r r r r r r'],
    ['is running and shall pause', 'running', pauseWish, 'k k k r r r r r'],
    ['is being cancelled', 'cancelling', cancelWish, 'k k k x r x x r'],
    ['is being cancelled by who took it over', 'cancelling', null, 'k k k x r x x r'],
  ])('of a run that %s', (_, status, wish, expected) => {
    const answers = every.map((next) => {
      const parkIf = next === 'waiting' ? { inbox: 0 } : null
      return receive({ status, wish, inbox: 0 }, transition(1, ['a'], { status: next, parkIf }))
    })
    const letters = { kept: 'k', released: 'r', refused: 'x' }
    expect(answers.map((answer) => letters[answer]).join(' ')).toBe(expected)
  })

  it('a message that was not seen keeps a run from resting, and nothing else', () => {
    const run = { status: 'running', wish: null, inbox: 1 } as const
    expect(receive(run, transition(1, ['a'], { status: 'waiting', parkIf: { inbox: 0 } }))).toBe('kept')
    expect(receive(run, transition(1, ['a'], { status: 'waiting', parkIf: { inbox: 1 } }))).toBe('released')
    expect(receive(run, transition(1, ['a'], { status: 'pending' }))).toBe('released')
  })

  it('PQ-P1 a run that is being cancelled does not begin anew; one that shall pause does', () => {
    const anew = transition(1, ['a'], { continues })
    expect(receive({ status: 'cancelling', wish: null, inbox: 0 }, anew)).toBe('refused')
    expect(receive({ status: 'running', wish: pauseWish, inbox: 0 }, anew)).toBe('kept')
  })
})

const watching = { starts: [], watches: [{ kind: 'run', runId: 'other' }], unwatches: [] } as const

describe('assertLegal', () => {
  it.each<[string, Partial<Transition>]>([
    ['appends nothing', { append: [] }],
    ['reaches others without an entry', { append: [], status: 'waiting', parkIf: { inbox: 0 }, reach: watching }],
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
