// Committing transitions. The common case is one UPDATE with the fence in its WHERE, which says with its count of rows
// that the writer holds the run, nobody wants anything of it, the journal is where the writer thinks, and the mailbox is as
// it was seen (mostly empty; measured, this costs a third less than RETURNING the mailbox's count). Only when no row fits,
// or the transition is an unusual one, is the run looked at: to tell who is refused and why, who is answered again, and who
// may write all the same.

import { advanced, left, restOf } from '../../core/advance.ts'
import { bug } from '../../core/error.ts'
import { holds, isTerminal, type Run } from '../../core/run.ts'
import { assertLegal, dueAt, isParkedBy, receive, type Transition } from '../../core/transition.ts'
import type { Committed } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'
import { readRun, transitionAt } from './reading.ts'
import { keyHolder, rewriteRun } from './rewriting.ts'

const fence = `where shard = 0 and id = ? and seq = ? and token = ? and session = ? and status = 'running' and inbox = ?
  and wish is null and deleted_at is null`

const checkpointSql = `update runs set seq = ?, crashes = 0, updated_at = ? ${fence}`

const leaveSql = `update runs set seq = ?, crashes = 0, updated_at = ?, status = ?, readiness = ?, due = ?, ended_at = ?,
  session = null, deadline = null ${fence}`

export function commitOne(batch: Batch, transition: Transition): Committed {
  const { id, runId, guard, append, status, parkIf, undo, continues } = transition
  const inbox = parkIf?.inbox ?? 0
  const usual = undo === null && continues === null && status !== 'cancelling'
  if (!usual || !write(batch, transition, inbox)) return commitAfterLooking(batch, transition)
  assertLegal('running', transition)
  batch.append(runId, guard.seq, append, id)
  take(batch, transition)
  const seq = guard.seq + append.length
  return { outcome: 'committed', seq, at: batch.now, inbox, released: status !== null, wish: null }
}

/** Writes the row if the fence lets it through: as a checkpoint, or leading to a status. */
function write(batch: Batch, { runId, guard, append, due, status }: Transition, inbox: number): boolean {
  const { db, now } = batch
  const seq = guard.seq + append.length
  const behind = [runId, guard.seq, guard.lease.token, guard.lease.session, inbox] as const
  if (status === null) return db.run(checkpointSql, [seq, now, ...behind]) === 1

  const [readiness, dueTime] = restOf(status, dueAt(due, now), now)
  const ended = isTerminal(status)
  const values = [seq, now, status, readiness, dueTime, ended ? now : null, ...behind] as const
  if (db.run(leaveSql, values) !== 1) return false
  if (ended) batch.ended(runId)
  else if (readiness !== 'idle') batch.readyRun(runId)
  return true
}

function commitAfterLooking(batch: Batch, transition: Transition): Committed {
  const { db, now } = batch
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

  const received = receive(run, transition)
  if (received === 'refused') return { outcome: 'refused', reason: 'cancelling', wish: run.wish }
  const kept = advanced(run, transition, now)
  if (transition.continues !== null && run.deletedAt === null && keyHolder(db, kept) !== null) {
    return { outcome: 'refused', reason: 'key-taken' }
  }
  const released = received === 'released'
  rewriteRun(batch, run, { run: released ? left(kept, transition, now) : kept, append }, id)
  take(batch, transition)
  return { outcome: 'committed', seq: kept.seq, at: now, inbox: run.inbox, released, wish: released ? null : run.wish }
}

/** A message that was taken stays known, so that delivering it again changes nothing. */
function take({ db }: Batch, { runId, guard, takes }: Transition): void {
  if (takes.length === 0) return
  const sql = `
    update messages set taken_by = ?
    where shard = 0 and run_id = ? and taken_by is null and id in (select value from json_each(?))`
  db.run(sql, [guard.seq + 1, runId, JSON.stringify(takes)])
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(db: Connection, run: Run, { guard, append, status }: Transition): Committed {
  const seq = guard.seq + append.length
  const at = db.get('select at from journal where shard = 0 and run_id = ? and seq = ?', [run.id, seq])?.['at']
  if (typeof at !== 'number') throw bug('A transition was committed in part', { runId: run.id })
  const held = holds(run, guard.lease)
  const wish = held ? run.wish : null
  return { outcome: 'committed', seq, at, inbox: run.inbox, released: status !== null && !held, wish }
}
