// Committing transitions. The common case is one UPDATE with the fence in its WHERE, which says with its count of rows
// that the writer holds the run, the journal is where the writer thinks, and the mailbox is as it was seen (mostly empty;
// measured, this costs a third less than RETURNING the mailbox's count). Only when no row fits is the run looked at, to
// tell who is refused and why, who is answered again, and who may write all the same.

import { bug } from '../../core/error.ts'
import { holds, isTerminal, type Readiness, type Run } from '../../core/run.ts'
import { assertLegal, dueAt, isParkedBy, type NextStatus, type Transition } from '../../core/transition.ts'
import type { Committed } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'
import { readRun, transitionAt } from './reading.ts'

type Holding = 'running' | 'cancelling'

const fence = (status: Holding): string =>
  `where shard = 0 and id = ? and seq = ? and token = ? and session = ? and status = '${status}' and inbox = ?`

const checkpointSql = {
  running: `update runs set seq = ?, crashes = 0, updated_at = ? ${fence('running')}`,
  cancelling: `update runs set seq = ?, crashes = 0, updated_at = ? ${fence('cancelling')}`,
}

const leaveAssignments =
  'seq = ?, crashes = 0, updated_at = ?, status = ?, readiness = ?, due = ?, ended_at = ?, session = null, deadline = null'

const leaveSql = {
  running: `update runs set ${leaveAssignments} ${fence('running')}`,
  cancelling: `update runs set ${leaveAssignments} ${fence('cancelling')}`,
}

export function commitOne(batch: Batch, transition: Transition): Committed {
  const inbox = transition.parkIf?.inbox ?? 0
  if (write(batch, transition, 'running', inbox, transition.status)) {
    assertLegal('running', transition)
    return committed(batch, transition, inbox, transition.status !== null)
  }
  return commitAfterLooking(batch, transition)
}

function commitAfterLooking(batch: Batch, transition: Transition): Committed {
  const { db } = batch
  const { id, runId, guard, append, parkIf } = transition
  const run = readRun(db, runId)
  if (run === undefined) return { outcome: 'refused', reason: 'not-found' }
  if (append.length > 0 && run.seq > guard.seq && transitionAt(db, runId, guard.seq + 1) === id) {
    return repeated(db, run, transition)
  }
  if (!holds(run, guard.lease)) {
    return isParkedBy(run, transition)
      ? { outcome: 'committed', seq: run.seq, at: run.updatedAt, inbox: run.inbox, released: true }
      : { outcome: 'refused', reason: 'lease-lost' }
  }
  if (run.seq !== guard.seq) return { outcome: 'refused', reason: 'stale' }
  assertLegal(run.status, transition)

  const released = transition.status !== null && (parkIf === null || parkIf.inbox === run.inbox)
  if (!write(batch, transition, run.status as Holding, run.inbox, released ? transition.status : null)) {
    throw bug('A run changed under the write lock', { runId })
  }
  return committed(batch, transition, run.inbox, released)
}

function committed(batch: Batch, transition: Transition, inbox: number, released: boolean): Committed {
  const { id, runId, guard, append } = transition
  batch.append(runId, guard.seq, append, id)
  return { outcome: 'committed', seq: guard.seq + append.length, at: batch.now, inbox, released }
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(db: Connection, run: Run, { guard, append, status }: Transition): Committed {
  const seq = guard.seq + append.length
  const at = db.get('select at from journal where shard = 0 and run_id = ? and seq = ?', [run.id, seq])?.['at']
  if (typeof at !== 'number') throw bug('A transition was committed in part', { runId: run.id })
  return { outcome: 'committed', seq, at, inbox: run.inbox, released: status !== null && !holds(run, guard.lease) }
}

/** Writes the row if the fence lets it through: as a checkpoint, or leading to a status. */
function write(
  batch: Batch,
  { runId, guard, append, due }: Transition,
  from: Holding,
  inbox: number,
  status: NextStatus | null,
): boolean {
  const { db, now } = batch
  const seq = guard.seq + append.length
  const behind = [runId, guard.seq, guard.lease.token, guard.lease.session, inbox] as const
  if (status === null) return db.run(checkpointSql[from], [seq, now, ...behind]) === 1

  const [readiness, dueTime] = rest(status, dueAt(due, now), now)
  const ended = isTerminal(status)
  const values = [seq, now, status, readiness, dueTime, ended ? now : null, ...behind] as const
  if (db.run(leaveSql[from], values) !== 1) return false
  if (ended) batch.ended(runId)
  else if (readiness !== 'idle') batch.readyRun(runId)
  return true
}

/** How a run is scheduled that nobody holds any more. */
function rest(status: NextStatus, due: number | null, now: number): readonly [Readiness, number | null] {
  const at = status === 'pending' ? (due ?? now) : status === 'waiting' ? due : null
  if (at === null) return ['idle', null]
  return [at > now ? 'timed' : 'ready', at]
}

/** Gives a lease back; a lost one is passed over. This claim was no crash; those before it were. */
export function releaseOne(batch: Batch, lease: { readonly runId: string; session: string; token: number }): void {
  const changed = batch.db.run(
    `update runs set status = 'pending', readiness = 'ready', due = ?, session = null, deadline = null,
       crashes = max(crashes - 1, 0)
     where shard = 0 and id = ? and session = ? and token = ? and status = 'running'`,
    [batch.now, lease.runId, lease.session, lease.token],
  )
  if (changed === 1) batch.readyRun(lease.runId)
}
