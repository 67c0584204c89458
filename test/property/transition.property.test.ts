// Merging must change nothing: a queue of transitions, however it is merged, does to a run what it does one by one.
// The run here is a model of a few fields, and refuses what every store refuses.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import type { Draft } from '../../src/core/model/entry.ts'
import { holds, type Lease, type RunStatus, type UndoState } from '../../src/core/model/run.ts'
import {
  mayMerge,
  mergeTransitions,
  undoAfter,
  type Continuation,
  type NextStatus,
  type Outbound,
  type Transition,
} from '../../src/core/model/transition.ts'
import type { Due } from '../../src/core/model/due.ts'

interface Model {
  readonly entries: readonly Draft[]
  readonly seq: number
  readonly status: RunStatus
  readonly session: string | null
  readonly due: number | null
  readonly undo: UndoState
  readonly type: string
  readonly base: number
  readonly refused: boolean
  /** What was done to others, in order. */
  readonly reached: readonly Outbound[]
  /** At which inbox the mailbox was known to be empty when it ended; null if that was not known. */
  readonly emptyAt: number | null
}

const lease: Lease = { session: 's', token: 1 }
const now = 1000

function apply(run: Model, inbox: number, transition: Transition): Model {
  const { guard, append, status, due, parkIf, undo, continues, outbound = null, emptyAt = null } = transition
  if (run.refused || guard.seq !== run.seq || !holds({ ...run, token: 1 }, guard.lease))
    return { ...run, refused: true }
  const seq = run.seq + append.length
  const anew = continues === null ? {} : { type: continues.type, base: seq, undo: 'none' as const }
  const reached = outbound === null ? run.reached : [...run.reached, outbound]
  const entries = [...run.entries, ...append]
  const appended = { ...run, entries, seq, undo: undoAfter(run.undo, undo), reached, ...anew }
  const stays = status === null || (parkIf !== null && parkIf.inbox !== inbox)
  return stays ? appended : { ...appended, status, session: null, due: dueAt(due), emptyAt }
}

function dueAt(due: Due | null): number | null {
  const times = [due?.at ?? null, typeof due?.afterMs === 'number' ? now + due.afterMs : null].filter(
    (time) => time !== null,
  )
  return times.length === 0 ? null : Math.min(...times)
}

function runAt(seq: number): Model {
  return {
    entries: [],
    seq,
    status: 'running',
    session: 's',
    due: null,
    undo: 'none',
    type: 'a',
    base: 1,
    refused: false,
    reached: [],
    emptyAt: null,
  }
}

const draft: fc.Arbitrary<Draft> = fc.record({
  kind: fc.constant('recorded' as const),
  name: fc.string(),
  meta: fc.constant(null),
  data: fc.string(),
})

const due = fc.option(fc.record({ at: fc.option(fc.nat(3000)), afterMs: fc.option(fc.nat(3000)) }))

const undo = fc.option(fc.constantFrom<UndoState>('none', 'possible', 'due'))

const continues: fc.Arbitrary<Continuation | null> = fc.option(
  fc.record({ type: fc.constantFrom('a', 'b'), version: fc.constant(1), feed: fc.boolean() }),
)

const outbound: fc.Arbitrary<Outbound | null> = fc.option(
  fc.constant<Outbound>({ starts: [], watches: [{ kind: 'run', runId: 'other' }], unwatches: [] }),
)

const ending = fc.record({
  append: fc.array(draft, { maxLength: 3 }),
  undo,
  continues,
  status: fc.option(fc.constantFrom<NextStatus>('pending', 'waiting', 'paused', 'succeeded', 'failed', 'cancelled')),
  due,
  inbox: fc.nat(2),
  outbound,
  emptyAt: fc.option(fc.nat(2)),
})

/** Checkpoints of one holder without a gap, the last of which may give the lease away. */
const queue = fc
  .tuple(
    fc.nat(5),
    fc.array(fc.record({ append: fc.array(draft, { maxLength: 3 }), due, undo }), { minLength: 1, maxLength: 6 }),
    ending,
  )
  .map(([start, checkpoints, last]) => {
    let seq = start
    const plain = { status: null, inbox: 0, continues: null, outbound: null, emptyAt: null }
    const made = [...checkpoints.map((one) => ({ ...one, ...plain })), last]
    return made.map(({ append, status, due, inbox, undo, continues, outbound, emptyAt }, index): Transition => {
      const guard = { seq, lease }
      seq += append.length
      return {
        id: `t${index}`,
        runId: 'r',
        guard,
        append,
        status,
        due,
        parkIf: status === 'waiting' ? { inbox } : null,
        undo,
        continues,
        takes: [`m${index}`],
        outbound,
        ...(emptyAt === null ? {} : { emptyAt }),
      }
    })
  })

const merge = (transitions: readonly Transition[]): Transition => transitions.reduce(mergeTransitions)

describe('merging', () => {
  it('does what the transitions would have done one after the other', () => {
    fc.assert(
      fc.property(queue, fc.nat(2), (transitions, inbox) => {
        const run = runAt(transitions[0]?.guard.seq ?? 0)
        const oneByOne = transitions.reduce((model, transition) => apply(model, inbox, transition), run)
        expect(oneByOne.refused).toBe(false)
        expect(apply(run, inbox, merge(transitions))).toEqual(oneByOne)
      }),
    )
  })

  it('does so also when the queue is cut anywhere into several', () => {
    fc.assert(
      fc.property(queue, fc.nat(2), fc.nat(5), (transitions, inbox, cut) => {
        const at = 1 + (cut % (transitions.length - 1))
        const parts = [transitions.slice(0, at), transitions.slice(at)].map(merge)
        const run = runAt(transitions[0]?.guard.seq ?? 0)
        const inParts = parts.reduce((model, transition) => apply(model, inbox, transition), run)
        expect(inParts).toEqual(apply(run, inbox, merge(transitions)))
      }),
    )
  })

  it('is associative', () => {
    fc.assert(
      fc.property(queue, (transitions) => {
        const fromTheLeft = transitions.reduce(mergeTransitions)
        const fromTheRight = transitions.reduceRight((later, earlier) => mergeTransitions(earlier, later))
        expect(fromTheRight).toEqual(fromTheLeft)
      }),
    )
  })

  it('a stale queue is refused as a whole, merged or not', () => {
    fc.assert(
      fc.property(queue, fc.integer({ min: 1, max: 3 }), (transitions, ahead) => {
        const run = runAt((transitions[0]?.guard.seq ?? 0) + ahead)
        expect(apply(run, 0, merge(transitions))).toEqual({ ...run, refused: true })
      }),
    )
  })
})

describe('mayMerge', () => {
  it('allows exactly what the model would accept of the same holder, one after the other, unless it begins anew or reaches others between', () => {
    const any = fc.record({
      runId: fc.constantFrom('r', 'other'),
      seq: fc.nat(4),
      lease: fc.record({ session: fc.constantFrom('s', 'z'), token: fc.constantFrom(1, 2) }),
      status: fc.constantFrom<NextStatus | null>(null, null, 'pending', 'succeeded'),
      append: fc.array(draft, { maxLength: 2 }),
      continues: fc.constantFrom<Continuation | null>(null, null, { type: 'b', version: 1, feed: true }),
      outbound,
    })
    fc.assert(
      fc.property(any, any, (one, other) => {
        const [first, second] = [one, other].map(
          ({ runId, seq, lease, status, append, continues, outbound }): Transition => {
            return {
              id: 't',
              runId,
              guard: { seq, lease },
              append,
              status,
              due: null,
              parkIf: null,
              undo: null,
              continues,
              takes: [],
              outbound,
            }
          },
        ) as [Transition, Transition]
        const follows =
          one.runId === other.runId &&
          one.continues === null &&
          one.outbound === null &&
          JSON.stringify(one.lease) === JSON.stringify(other.lease) &&
          !apply(followedAt(one), 0, { ...second, guard: { ...second.guard, lease } }).refused
        expect(mayMerge(first, second)).toBe(follows)
      }),
      { numRuns: 2000 },
    )
  })
})

function followedAt({ seq, status, append }: { seq: number; status: NextStatus | null; append: Draft[] }): Model {
  const first = {
    id: 't',
    runId: 'r',
    guard: { seq, lease },
    append,
    status,
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
  }
  return apply(runAt(seq), 0, first)
}
