// What a process that does not hold a run may write for it: an input is decided, with the run that it begins, behind what is there,
// or as what the end of a child settles.

import type { Draft } from '../../src/core/model/entry.ts'
import type { Due } from '../../src/core/model/due.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Outbound, Transition } from '../../src/core/model/transition.ts'
import type { Chances } from './chances.ts'
import { endOf } from './transitions.ts'

const event: Draft = { kind: 'event', name: 'Paid', meta: { version: 1 }, data: '{"type":"Paid"}' }
const snapshot: Draft = { kind: 'snapshot', name: null, meta: { fingerprint: 'f00' }, data: '{"state":1}' }
const ends: Readonly<Record<'succeeded' | 'failed', Draft>> = {
  succeeded: { kind: 'succeeded', name: null, meta: null, data: '"out"' },
  failed: { kind: 'failed', name: null, meta: null, data: '"no"' },
}

/** A transition without a lease behind that entry. `mayReach`: it may go together with that. */
export function unheldTransition(
  chances: Chances,
  { id: runId, seq, feed }: Pick<Run, 'id' | 'seq' | 'feed'>,
  now: number,
  outbound: Outbound | null,
): Transition {
  const status = chances.weighted([
    [8, 'waiting'],
    [1, 'succeeded'],
    [1, 'failed'],
  ] as const)
  const events = Array.from({ length: 1 + chances.below(3) }, () => event)
  const isKept = chances.oneIn(6)
  const append = [...events, ...(isKept ? [snapshot] : []), ...(status === 'waiting' ? [] : [ends[status]])]
  return {
    id: chances.unique('u'),
    runId,
    guard: { seq, lease: null },
    append,
    status,
    due: dueOf(chances, now),
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
    feed: feed !== chances.oneIn(10),
    outbound,
    base: isKept ? seq + events.length + 1 : null,
  }
}

/** Of a run that waits, mostly: nobody holds it. Null if none is to be written now. */
export function drawnUnheld(
  chances: Chances,
  rows: readonly Run[],
  now: number,
  reach: (run: Run) => Outbound | null,
): Transition | null {
  const waiting = rows.filter(({ status }) => status === 'waiting')
  if (!chances.oneIn(waiting.length > 0 ? 4 : 30)) return null
  const run = chances.pick(waiting.length > 0 && !chances.oneIn(8) ? waiting : rows)
  return unheldTransition(chances, run, now, chances.oneIn(2) ? reach(run) : null)
}

/** The end of a held child that settles what its parent, which lies in its shard, makes of it; null if there is none, or often. */
export function settlingTransition(
  chances: Chances,
  held: readonly Run[],
  rows: readonly Run[],
  now: number,
): Transition | null {
  const parents = new Map(rows.map((row) => [row.id, row]))
  const parentOf = ({ id, parentId, shard }: Run): Run | undefined => {
    const parent = parents.get(parentId ?? '')
    return parent?.shard === shard && parent.id !== id ? parent : undefined
  }
  const children = held.filter((run) => parentOf(run) !== undefined)
  if (children.length === 0 || !chances.oneIn(6)) return null
  const waiting = children.filter((run) => parentOf(run)?.status === 'waiting')
  const child = chances.pick(waiting.length > 0 && !chances.oneIn(4) ? waiting : children)
  const parent = parentOf(child) as Run
  const settles = unheldTransition(chances, chances.oneIn(6) ? { ...parent, seq: parent.seq - 1 } : parent, now, null)
  return { ...endOf(chances, child), settles }
}

function dueOf(chances: Chances, now: number): Due | null {
  return chances.maybe(2, [
    { at: null, afterMs: chances.below(300) },
    { at: now + chances.below(300) - 100, afterMs: null },
    { at: now + 150, afterMs: chances.below(300) },
    { at: null, afterMs: null },
  ])
}
