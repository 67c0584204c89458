// What a holder may commit for its run: one of everything that the engine ever sends, and what only a defect would.

import type { Draft } from '../../src/core/model/entry.ts'
import { isTerminal, type Run } from '../../src/core/model/run.ts'
import type { NextStatus, Transition } from '../../src/core/model/transition.ts'
import type { Due } from '../../src/core/model/due.ts'
import type { Chances } from './chances.ts'

const logged: Draft = { kind: 'logged', name: 'line', meta: null, data: '"said"' }
const undoable: Draft = {
  kind: 'step-succeeded',
  name: 'pay',
  meta: { attempt: 1, ms: 3, undo: true },
  data: '{"a":1}',
}
const failing: Draft = { kind: 'failing', name: null, meta: { cause: null, notUndone: [] }, data: '"no"' }
const undone: Draft = { kind: 'undone', name: 'pay', meta: { attempt: 1, ms: 0.5 }, data: null }
const ends: Readonly<Record<'succeeded' | 'failed' | 'cancelled' | 'paused', Draft>> = {
  succeeded: { kind: 'succeeded', name: null, meta: null, data: '"out"' },
  failed: { kind: 'failed', name: null, meta: { cause: 2, notUndone: ['pay'] }, data: '"no"' },
  cancelled: { kind: 'cancelled', name: null, meta: { reason: 'asked', notUndone: [] }, data: null },
  paused: { kind: 'paused', name: null, meta: { reason: 'operator', note: null }, data: null },
}

type Shape = Partial<
  Pick<
    Transition,
    'append' | 'status' | 'due' | 'parkIf' | 'undo' | 'continues' | 'takes' | 'outbound' | 'emptyAt' | 'applies'
  >
>

/** What the holder of this run could ask for now. Of one that nobody holds, it comes too late. */
export function sensibleTransition(chances: Chances, run: Run, messages: readonly string[], now: number): Transition {
  const shape = shapeOf(chances, run, now)
  // A holder that has read everything says so. What came since then is not what it read.
  const isEnd = shape.status !== undefined && shape.status !== null && isTerminal(shape.status)
  if (isEnd && chances.oneIn(3)) return made(chances, run, { takes: messages, emptyAt: run.inbox, ...shape })
  const takes = messages.length > 0 && chances.oneIn(3) ? [...chances.some(messages, 2), chances.unique('m')] : []
  return made(chances, run, { takes, ...shape })
}

/** What ends a held run. */
export function endOf(chances: Chances, run: Run): Transition {
  return made(chances, run, ending(chances, [], chances.pick(['succeeded', 'failed'])))
}

/** The same, but by another holder, from another place, or of a run that is not there. */
export function bentTransition(chances: Chances, transition: Transition, session: string, runId: string): Transition {
  const { guard } = transition
  const { lease } = guard
  if (lease === null) return { ...transition, guard: { ...guard, seq: guard.seq + chances.pick([-1, 1]) } }
  return chances.pick([
    { ...transition, guard: { ...guard, lease: { ...lease, token: lease.token - 1 } } },
    { ...transition, guard: { ...guard, lease: { ...lease, token: lease.token + 1 } } },
    { ...transition, guard: { ...guard, lease: { ...lease, session } } },
    { ...transition, guard: { ...guard, seq: guard.seq - 1 } },
    { ...transition, guard: { ...guard, seq: guard.seq + 1 } },
    { ...transition, runId },
  ])
}

/** What every store must reject as a defect, if the run is held. */
export function illegalTransition(chances: Chances, run: Run): Transition {
  const shapes: readonly Shape[] = [
    { append: [] },
    { append: [], status: 'pending' },
    {
      append: [],
      status: 'waiting',
      parkIf: { inbox: run.inbox },
      outbound: { starts: [], watches: [{ kind: 'run', runId: run.id }], unwatches: [] },
    },
    { status: 'waiting' },
    { parkIf: { inbox: run.inbox } },
    { append: [logged], continues: { type: 'ship', version: 1, feed: false } },
  ]
  return made(chances, run, chances.pick(shapes))
}

function made(chances: Chances, run: Run, shape: Shape): Transition {
  return {
    id: chances.unique('t'),
    runId: run.id,
    guard: { seq: run.seq, lease: { session: run.session ?? 'a0', token: run.token } },
    append: [logged],
    status: null,
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
    // Its holder mostly knows.
    feed: run.feed !== chances.oneIn(10),
    ...shape,
  }
}

function shapeOf(chances: Chances, run: Run, now: number): Shape {
  const lines = Array.from({ length: chances.below(3) }, () => logged)
  const kind = chances.weighted([
    [6, 'checkpoint'],
    [4, 'undoable'],
    [1, 'failing'],
    [5, 'park'],
    [2, 'pending'],
    [2, 'end'],
    [2, 'continue'],
    [run.status === 'cancelling' ? 4 : 1, 'cancel'],
  ] as const)
  switch (kind) {
    case 'checkpoint':
      return { append: [...lines, logged] }
    case 'undoable':
      return { append: [...lines, undoable], undo: 'possible' }
    case 'failing':
      return { append: [failing, undone], undo: 'due' }
    case 'park':
      return {
        append: lines,
        status: 'waiting',
        due: dueOf(chances, now),
        parkIf: { inbox: run.inbox - (chances.oneIn(6) ? 1 : 0), wakeNames: wantsOf(chances) },
      }
    case 'pending':
      return { append: [...lines, logged], status: 'pending', due: dueOf(chances, now) }
    case 'end':
      return obeying(chances, ending(chances, lines, chances.pick(['succeeded', 'failed', 'failed', 'paused'])))
    case 'continue':
      return continueAsNewStep(chances, run, lines)
    case 'cancel':
      if (chances.oneIn(4)) return { append: [...lines, undone], status: 'cancelling', due: dueOf(chances, now) }
      return ending(chances, [...lines, undone], 'cancelled')
  }
}

function ending(chances: Chances, lines: readonly Draft[], status: keyof typeof ends & NextStatus): Shape {
  return { append: [...lines, ends[status]], status, due: chances.oneIn(10) ? { at: null, afterMs: 5 } : null }
}

function obeying(chances: Chances, shape: Shape): Shape {
  return shape.status === 'paused' && chances.oneIn(2) ? { ...shape, applies: 'pause' } : shape
}

/** The names that the senders of these tests use, and one that nobody does. */
function wantsOf(chances: Chances): readonly string[] | null {
  return chances.maybe(3, [[], ['go'], ['go', 'nobody'], ['nobody'], ['news', 'jobs'], ['go', 'news', 'jobs', 'rates']])
}

function continueAsNewStep(chances: Chances, run: Run, lines: readonly Draft[]): Shape {
  const { type, version } = run
  const feed = chances.oneIn(2)
  const continues = chances.pick([
    { type, version, feed },
    { type, version: 2, feed },
    { type: 'ship', version: 1, feed },
  ])
  const input: Draft = { kind: 'continued', name: null, meta: continues, data: `${chances.below(100)}` }
  return { append: [...lines, input], continues, undo: chances.oneIn(6) ? 'possible' : null }
}

function dueOf(chances: Chances, now: number): Due | null {
  return chances.maybe(2, [
    { at: null, afterMs: chances.below(300) },
    { at: now + chances.below(300) - 100, afterMs: null },
    { at: now + 150, afterMs: chances.below(300) },
    { at: null, afterMs: null },
    { at: now + 50 * 365 * 86_400_000, afterMs: null },
  ])
}
