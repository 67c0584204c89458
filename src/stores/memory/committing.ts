// Committing transitions: fenced, each as a whole or not at all, together with what they do to others.

import { bindChild, conclude, refuseChild, unwatch, watch } from '../../core/exchange.ts'
import { holds, isTerminal } from '../../core/run.ts'
import {
  assertLegal,
  endsLease,
  isParkedBy,
  objection,
  undoAfter,
  type Reach,
  type Transition,
} from '../../core/transition.ts'
import { dueAt } from '../../core/due.ts'
import type { Committed } from '../../store.ts'
import { MemoryBooks } from './books.ts'
import type { Row } from './row.ts'
import { startOne } from './starting.ts'
import type { Tables } from './tables.ts'

export function commitOne(tables: Tables, transition: Transition, now: number): Committed {
  const row = tables.rows.get(transition.runId)
  if (row === undefined) return { outcome: 'refused', reason: 'not-found' }
  const { seq, lease } = transition.guard
  if (row.entries[seq]?.transition === transition.id) return repeated(row, transition)
  if (!holds(row, lease)) {
    return isParkedBy(row, transition)
      ? { outcome: 'committed', seq, at: row.updatedAt, inbox: row.inbox, released: true, wish: null }
      : { outcome: 'refused', reason: 'lease-lost' }
  }
  if (row.seq !== seq) return { outcome: 'refused', reason: 'stale' }
  assertLegal(row.status, transition)

  const reason = objection(row, transition, now)
  if (reason === 'cancelling') return { outcome: 'refused', reason, wish: row.view().wish }
  if (reason !== null) return { outcome: 'refused', reason }
  const { continues, reach = null } = transition
  if (
    continues !== null &&
    row.deletedAt === null &&
    tables.keys.holder({ ...row.view(), ...continues }) !== undefined
  ) {
    return { outcome: 'refused', reason: 'key-taken' }
  }
  tables.append(row, transition.id, transition.append, now, continues ?? row)
  if (transition.takes.length > 0) row.take(transition.takes, seq + 1)
  row.crashes = 0
  row.keyId = transition.keyId ?? row.keyId
  if (transition.undo !== null || continues !== null) turn(tables, row, transition)
  if (reach !== null) reachOut(tables, row, reach, now)
  // Whoever waits on something that is over by now has mail already.
  const released = endsLease(row, transition, (after, names) => row.hasMail(after, names))
  if (released) leave(tables, row, transition, now)
  const wish = released || row.wish === null ? null : { ...row.wish }
  return { outcome: 'committed', seq: row.seq, at: now, inbox: row.inbox, released, wish }
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(row: Row, transition: Transition): Committed {
  const last = row.entries[transition.guard.seq + transition.append.length - 1]
  // A late copy of a merged transition, whose first part was committed by itself meanwhile: nobody waits for this answer.
  if (last === undefined) return { outcome: 'refused', reason: 'stale' }
  const held = holds(row, transition.guard.lease)
  const released = transition.status !== null && !held
  const wish = held && row.wish !== null ? { ...row.wish } : null
  return { outcome: 'committed', seq: last.seq, at: last.at, inbox: row.inbox, released, wish }
}

/** The run has something else to undo from here on, or begins anew. */
function turn(tables: Tables, row: Row, { undo, continues }: Transition): void {
  row.undo = undoAfter(row.undo, undo)
  if (undo === 'due') {
    row.timeoutAt = null
    row.expiresAt = null
    tables.bounds.note(row)
  }
  if (continues === null) return
  tables.keys.free(row)
  row.type = continues.type
  row.version = continues.version
  row.feed = continues.feed
  row.base = row.seq
  row.undo = 'none'
  tables.keys.take(row)
}

function reachOut(tables: Tables, row: Row, { starts, watches, unwatches }: Reach, now: number): void {
  const books = new MemoryBooks(tables, now)
  for (const watched of unwatches) unwatch(books, row.view(), watched)
  for (const watched of watches) watch(books, row.view(), watched)
  for (const { run, ...bond } of starts) {
    const { created, taken, run: found } = startOne(tables, run, now)
    if (created) bindChild(books, row.view(), found, bond)
    else refuseChild(books, row.view(), run.id, { taken: taken ?? 'id', by: found.id })
  }
}

/** Ends the lease and leads the run to the status that the transition asks for. */
function leave(tables: Tables, row: Row, transition: Transition, now: number): void {
  row.status = transition.status ?? row.status
  row.wants = transition.parkIf?.wants?.slice() ?? null
  row.session = null
  row.deadline = null
  // What a cancellation said is wanted until it is over, and that has no bound on its time.
  if (row.status === 'cancelling') row.timeoutAt = null
  else row.wish = null
  tables.bounds.note(row)
  if (isTerminal(row.status)) {
    tables.end(row, now)
    // Most runs end unwatched and unwritten to.
    if (row.watched || row.inbox > 0) conclude(new MemoryBooks(tables, now), row.view())
    return
  }
  const due = dueAt(transition.due, now)
  if (row.deletedAt !== null) tables.queues.remove(row, 'idle')
  else if (row.status === 'pending' || row.status === 'cancelling') tables.schedule(row, due ?? now, now)
  else if (row.status === 'waiting' && due !== null) tables.schedule(row, due, now)
  else tables.queues.remove(row, 'idle')
}
