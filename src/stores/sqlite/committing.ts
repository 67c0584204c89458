// Committing transitions. The common case is one UPDATE with the fence in its WHERE, which says with its count of rows
// that the writer holds the run, nobody wants anything of it, the journal and the feed are what the writer thinks, and the mailbox is as
// it was seen (mostly empty; measured, this costs a third less than RETURNING the mailbox's count). An end wants to know,
// too, that nobody is to be told of it. Only when no row fits, or the transition is an unusual one, is the run looked at: to
// tell who is refused and why, who is answered again, who may write all the same, and whom else it concerns.

import { advanced, left, restOf } from '../../core/advance.ts'
import { bindChild, refuseChild, unwatch, watch } from '../../core/exchange.ts'
import { holds, isTerminal, type Run } from '../../core/run.ts'
import { assertLegal, endsLease, isParkedBy, objection, type Reach, type Transition } from '../../core/transition.ts'
import { toldOf } from '../../core/told.ts'
import { dueAt } from '../../core/due.ts'
import { wantsText } from '../../core/wanted.ts'
import type { Committed } from '../../store.ts'
import type { Batch } from './batch.ts'
import { SqliteBooks } from './books.ts'
import type { Connection } from './connection.ts'
import { readRun, transitionAt } from './reading.ts'
import { keyHolder, rewriteRun } from './rewriting.ts'
import { startRuns } from './starting.ts'

const fence = `where shard = 0 and id = ? and seq = ? and token = ? and session = ? and status = 'running' and inbox = ?
  and wish is null and deleted_at is null and feed = ?`

const checkpointSql = `update runs set seq = ?, crashes = 0, updated_at = ? ${fence}`

const leaveSql = `update runs set seq = ?, crashes = 0, updated_at = ?, status = ?, readiness = ?, due = ?, ended_at = ?,
  session = null, deadline = null, wants = ? ${fence}`

const endSql = `${leaveSql} and watched = 0`

/** Nothing succeeds when the time for it is over. */
const succeedSql = `${endSql} and (timeout_at is null or timeout_at > ?)`

export function commitOne(batch: Batch, transition: Transition): Committed {
  const { id, runId, guard, append, status, parkIf, reach = null, emptyAt = 0, feed = false } = transition
  const inbox = parkIf?.inbox ?? emptyAt
  if (!isUsual(transition) || !write(batch, transition, inbox)) return commitAfterLooking(batch, transition)
  assertLegal('running', transition)
  batch.append(runId, guard.seq, append, id, feed ? append.length : 0)
  take(batch, transition)
  for (const watched of reach?.unwatches ?? []) unwatch(new SqliteBooks(batch), { id: runId }, watched)
  const seq = guard.seq + append.length
  return { outcome: 'committed', seq, at: batch.now, inbox, released: status !== null, wish: null }
}

/** One that the fence alone can judge. */
function isUsual(transition: Transition): boolean {
  const { undo, continues, status, obeys = null, keyId = null } = transition
  if (keyId !== null) return false
  return !isFar(transition) && undo === null && continues === null && obeys === null && status !== 'cancelling'
}

/** Others have to be looked at. Whoever only stops to watch something, and knows its mailbox, touches nobody. */
function isFar({ reach = null, parkIf, emptyAt }: Transition): boolean {
  if (reach === null) return false
  return reach.starts.length > 0 || reach.watches.length > 0 || (parkIf === null && emptyAt === undefined)
}

/** Writes the row if the fence lets it through: as a checkpoint, or leading to a status. */
function write(batch: Batch, transition: Transition, inbox: number): boolean {
  const { db, now } = batch
  const { runId, guard, append, due, status, parkIf, feed = false } = transition
  const seq = guard.seq + append.length
  const behind = [runId, guard.seq, guard.lease.token, guard.lease.session, inbox, feed ? 1 : 0] as const
  if (status === null) return db.run(checkpointSql, [seq, now, ...behind]) === 1

  const [readiness, dueTime] = restOf(status, dueAt(due, now), now)
  const ended = isTerminal(status)
  const wants = wantsText(parkIf?.wants, guard.lease.token)
  const values = [seq, now, status, readiness, dueTime, ended ? now : null, wants, ...behind] as const
  const isWritten =
    status === 'succeeded' ? db.run(succeedSql, [...values, now]) : db.run(ended ? endSql : leaveSql, values)
  if (isWritten !== 1) return false
  if (ended) batch.ended(runId)
  else if (readiness !== 'idle') batch.readyRun(runId)
  return true
}

function commitAfterLooking(batch: Batch, transition: Transition): Committed {
  const { db } = batch
  const { id, runId, guard, append } = transition
  const run = readRun(db, runId)
  if (run === undefined) return { outcome: 'refused', reason: 'not-found' }
  if (append.length > 0 && run.seq > guard.seq && transitionAt(db, runId, guard.seq + 1) === id) {
    return repeated(db, run, transition)
  }
  if (!holds(run, guard.lease)) {
    return isParkedBy(run, transition)
      ? { outcome: 'committed', seq: run.seq, at: run.updatedAt, inbox: run.inbox, released: true, wish: null }
      : { outcome: 'refused', reason: 'lease-lost' }
  }
  if (run.seq !== guard.seq) return { outcome: 'refused', reason: 'stale' }
  assertLegal(run.status, transition)

  const reason = objection(run, transition, batch.now)
  if (reason === 'cancelling') return { outcome: 'refused', reason, wish: run.wish }
  if (reason !== null) return { outcome: 'refused', reason }
  const { continues } = transition
  if (continues !== null && run.deletedAt === null && keyHolder(db, { ...run, ...continues }) !== null) {
    return { outcome: 'refused', reason: 'key-taken' }
  }
  return commitHeld(batch, run, transition)
}

/** Writes what its holder may write, whatever else there is to do. */
function commitHeld(batch: Batch, run: Run, transition: Transition): Committed {
  const { now } = batch
  const { id, append, continues, reach = null } = transition
  // First, so that the feed tells of it before it tells of whom it starts.
  let kept = advanced(run, transition, now)
  batch.append(run.id, run.seq, append, id, toldOf(run, kept, append.length))
  take(batch, transition)
  if (reach !== null) {
    // A run that begins anew as another type has another key from here on, and whom it starts may have its old one.
    if (continues !== null) rewriteRun(batch, run, { run: kept, append: [] }, null)
    kept = { ...kept, ...reachOut(batch, kept, reach) }
  }
  // Whoever waits on something that is over by now has mail already.
  const books = new SqliteBooks(batch)
  const released = endsLease(kept, transition, (after, names) => books.hasMail(run.id, after, names))
  books.change(run, { run: released ? left(kept, transition, now) : kept, append: [] }, null)
  const { seq, inbox, wish } = kept
  return { outcome: 'committed', seq, at: now, inbox, released, wish: released ? null : wish }
}

/** Does what a transition does to others; answers what that has changed of the run itself. */
function reachOut(batch: Batch, run: Run, { starts, watches, unwatches }: Reach): Pick<Run, 'inbox' | 'watched'> {
  const books = new SqliteBooks(batch)
  for (const watched of unwatches) unwatch(books, run, watched)
  for (const watched of watches) watch(books, run, watched)
  const given = starts.map((start) => start.run)
  const started = given.length === 0 ? [] : startRuns(batch, given)
  for (const [index, { created, taken, run: found }] of started.entries()) {
    const { run: child, ...bond } = starts[index] as Reach['starts'][number]
    if (created) bindChild(books, run, found, bond)
    else refuseChild(books, run, child.id, { taken: taken ?? 'id', by: found.id })
  }
  const { inbox, watched } = books.run(run.id) ?? run
  return { inbox, watched }
}

/** A message that was taken stays known, so that delivering it again changes nothing. */
export const takeSql = `
  update messages set taken_by = ? where rowid in (
    select message.rowid from json_each(?) as one cross join messages as message
    where message.shard = 0 and message.run_id = ? and message.id = cast(one.value as text)) and taken_by is null`

function take({ db }: Batch, { runId, guard, takes }: Transition): void {
  if (takes.length > 0) db.run(takeSql, [guard.seq + 1, JSON.stringify(takes), runId])
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(db: Connection, run: Run, { guard, append, status }: Transition): Committed {
  const seq = guard.seq + append.length
  const at = db.get('select at from journal where shard = 0 and run_id = ? and seq = ?', [run.id, seq])?.['at']
  // A late copy of a merged transition, whose first part was committed by itself meanwhile: nobody waits for this answer.
  if (typeof at !== 'number') return { outcome: 'refused', reason: 'stale' }
  const held = holds(run, guard.lease)
  const wish = held ? run.wish : null
  return { outcome: 'committed', seq, at, inbox: run.inbox, released: status !== null && !held, wish }
}
