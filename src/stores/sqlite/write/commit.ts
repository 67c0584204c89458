// Committing transitions. The common case is one UPDATE with the fence in its WHERE, whose row count shows that the writer
// holds the run, there is no control request, the journal and the feed are as the writer knows them, and the mailbox is as it
// was seen (mostly empty; measured, this costs a third less than RETURNING the mailbox's count). For an end it also shows
// that no other run must be notified. Only when no row fits, or the transition is an unusual one, is the run read: to decide
// which transition is refused and why, which one is a repetition, which one may be written all the same, and which other runs
// it concerns.

import { advanced, left, restOf } from '../../../core/rules/advance.ts'
import { dueAt } from '../../../core/model/due.ts'
import { unwatch } from '../../../core/rules/messages/exchange.ts'
import type { Started } from '../../../core/model/new-run.ts'
import type { RunStart } from '../../../core/rules/run-start.ts'
import {
  commit,
  judge,
  type Committed,
  type EntryMark,
  type Keyed,
  type StartingWork,
} from '../../../core/rules/commit.ts'
import { isTerminal, type Lease, type Run } from '../../../core/model/run.ts'
import { follow } from '../../../core/rules/start.ts'
import { fedCount } from '../../../core/rules/feed-entries.ts'
import { assertLegal, sends, type Transition } from '../../../core/model/transition.ts'
import { wakeNamesText } from '../../../core/rows/wake-names.ts'
import type { Batch } from './batch.ts'
import { newMessageSql, SqliteUnitOfWork, unreadSql } from './unit-of-work.ts'
import { entryMarkAt, entryMarkOf } from '../read/read.ts'
import { keyHolder, rewriteRun } from './rewrite.ts'
import { startRuns } from './start.ts'

const fence = `where shard = 0 and id = ? and seq = ? and token = ? and session = ? and status = 'running' and inbox = ?
  and control_request is null and deleted_at is null and feed = ?`

const checkpointSql = `update runs set seq = ?, crashes = 0, updated_at = ? ${fence}`

const leaveSql = `update runs set seq = ?, crashes = 0, updated_at = ?, status = ?, readiness = ?, due = ?, ended_at = ?,
  session = null, deadline = null, wake_names = ? ${fence}`

const endSql = `${leaveSql} and watched = 0`

/** Nothing succeeds when the time for it is over. */
const succeedSql = `${endSql} and (timeout_at is null or timeout_at > ?)`

/**
 * Without a lease: a run that waits, and that nothing has woken. What a message has woken is due, and keeps that time, so the
 * mailbox has to be read.
 */
const unheldSql = `
  update runs set seq = ?, updated_at = ?, readiness = ?, due = ?, base = coalesce(?, base)
  where shard = 0 and id = ? and seq = ? and status = 'waiting' and readiness in ('idle', 'timed') and (due is null or due > ?)
    and deleted_at is null and feed = ? returning inbox`

export function commitOne(batch: Batch, transition: Transition): Committed {
  if (transition.guard.lease === null) return commitUnheld(batch, transition)
  const { id, runId, guard, append, status, parkIf, takes, outbound = null, emptyAt = 0, feed = false } = transition
  const inbox = parkIf?.inbox ?? emptyAt
  if (!isUsual(transition) || !write(batch, transition, inbox)) return commitAfterLooking(batch, transition)
  assertLegal('running', transition)
  batch.append(runId, guard.seq, append, id, feed ? append.length : 0)
  takeMessages(batch, runId, takes, guard.seq + 1)
  for (const watched of outbound?.unwatches ?? []) unwatch(new SqliteUnitOfWork(batch), { id: runId }, watched)
  const seq = guard.seq + append.length
  return { outcome: 'committed', seq, at: batch.now, inbox, released: status !== null, controlRequest: null }
}

/** An input was decided without a lease, and nothing else follows from it than entries and a time. */
function commitUnheld(batch: Batch, transition: Transition): Committed {
  const { id, runId, guard, append, status, due, outbound = null, keyId = null, base = null, feed = false } = transition
  const isPlain = status === 'waiting' && outbound === null && keyId === null && !sends(transition)
  if (!isPlain) return commitAfterLooking(batch, transition)
  const { db, now } = batch
  const seq = guard.seq + append.length
  const [readiness, dueTime] = restOf(status, dueAt(due, now), now)
  const row = db.get(unheldSql, [seq, now, readiness, dueTime, base, runId, guard.seq, now, feed ? 1 : 0])
  if (row === undefined) return commitAfterLooking(batch, transition)
  assertLegal('waiting', transition)
  if (readiness !== 'idle') batch.readyRun(runId)
  batch.append(runId, guard.seq, append, id, feed ? append.length : 0)
  return { outcome: 'committed', seq, at: now, inbox: Number(row['inbox']), released: true, controlRequest: null }
}

/** One that the fence alone can judge. */
function isUsual(transition: Transition): boolean {
  const { undo, continues, status, applies = null, keyId = null, base = null, settles = null } = transition
  if (keyId !== null || base !== null || settles !== null) return false
  return !isFar(transition) && undo === null && continues === null && applies === null && status !== 'cancelling'
}

/** Other rows have to be read. A run that only ceases to watch a target, and knows its mailbox, touches no other. */
function isFar(transition: Transition): boolean {
  const { outbound = null, parkIf, emptyAt } = transition
  if (sends(transition)) return true
  if (outbound === null) return false
  return outbound.starts.length > 0 || outbound.watches.length > 0 || (parkIf === null && emptyAt === undefined)
}

/** Writes the row if the fence lets it through: as a checkpoint, or leading to a status. */
function write(batch: Batch, transition: Transition, inbox: number): boolean {
  const { db, now } = batch
  const { runId, guard, append, due, status, parkIf, feed = false } = transition
  const lease = guard.lease as Lease
  const seq = guard.seq + append.length
  const behind = [runId, guard.seq, lease.token, lease.session, inbox, feed ? 1 : 0] as const
  if (status === null) return db.run(checkpointSql, [seq, now, ...behind]) === 1

  const [readiness, dueTime] = restOf(status, dueAt(due, now), now)
  const ended = isTerminal(status)
  const wakeNames = wakeNamesText(parkIf?.wakeNames, lease.token)
  const values = [seq, now, status, readiness, dueTime, ended ? now : null, wakeNames, ...behind] as const
  const isWritten =
    status === 'succeeded' ? db.run(succeedSql, [...values, now]) : db.run(ended ? endSql : leaveSql, values)
  if (isWritten !== 1) return false
  if (ended) batch.ended(runId)
  else if (readiness !== 'idle') batch.readyRun(runId)
  return true
}

/** Starts runs, and what follows from those first inputs that are decided. */
export function startAll(batch: Batch, runs: readonly RunStart[]): readonly Started[] {
  return startRuns(new SqliteUnitOfWork(batch), runs, (decided) => follow(new SqliteCommitWork(batch), decided))
}

/** A transition that the fence alone cannot judge: the rules decide. */
function commitAfterLooking(batch: Batch, transition: Transition): Committed {
  const unitOfWork = new SqliteCommitWork(batch)
  const run = unitOfWork.run(transition.runId)
  return judge(unitOfWork, run, transition) ?? commit(unitOfWork, run as Run, transition)
}

/** The tables as the rules of a commit read and write them. */
class SqliteCommitWork extends SqliteUnitOfWork implements StartingWork {
  entryAt(runId: string, seq: number): EntryMark | undefined {
    const row = this.batch.gathered(runId, seq)
    return row === undefined ? entryMarkAt(this.batch.db, runId, seq) : entryMarkOf(row)
  }

  keyHolder(run: Keyed): string | null {
    return keyHolder(this.batch.db, run)
  }

  hasMessageAfter({ runId }: Transition, after: number, names: readonly string[] | null): boolean {
    // As all other reads of it: after that, libsql answers one `get` of the same statement with nothing.
    if (names === null) return this.batch.db.all(unreadSql, [runId, after, 1]).length > 0
    return names.some((name) => this.batch.db.get(newMessageSql, [runId, name, after]) !== undefined)
  }

  /** The row is written once, when its final state is known. */
  advance(run: Run, transition: Transition): Run {
    const { id, append, continues, outbound = null } = transition
    const kept = advanced(run, transition, this.now)
    this.batch.append(run.id, run.seq, append, id, fedCount(run, kept, append.length))
    // A run that begins anew as another type has another key from here on, and a child of it may have its old one.
    if (continues !== null && outbound !== null) rewriteRun(this.batch, run, { run: kept, append: [] }, null)
    return kept
  }

  take(runId: string, ids: readonly string[], seq: number): void {
    takeMessages(this.batch, runId, ids, seq)
  }

  startChildren({ outbound }: Transition): readonly Started[] {
    const runs = (outbound?.starts ?? []).map(({ run }) => run)
    return startRuns(this, runs)
  }

  present(run: Run): Run {
    // A run without a holder may have been woken.
    const { inbox, watched, readiness, due } = this.run(run.id) ?? run
    return { ...run, inbox, watched, readiness, due }
  }

  leave(before: Run, kept: Run, transition: Transition, isReleased: boolean): Run {
    const run = isReleased ? left(kept, transition, this.now) : kept
    rewriteRun(this.batch, before, { run, append: [] }, null)
    return run
  }
}

/** A message that was taken stays known, so that delivering it again changes nothing. */
export const takeSql = `
  update messages set taken_by = ? where rowid in (
    select message.rowid from json_each(?) as one cross join messages as message
    where message.shard = 0 and message.run_id = ? and message.id = cast(one.value as text)) and taken_by is null`

function takeMessages({ db }: Batch, runId: string, ids: readonly string[], seq: number): void {
  if (ids.length > 0) db.run(takeSql, [seq, JSON.stringify(ids), runId])
}
