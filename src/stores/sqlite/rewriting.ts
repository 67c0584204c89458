// Writing a whole row back, with entries: what steering, a takeover, a give-back and the rarer commits have in common. What
// becomes of a run is decided before; here it is only written, and told to those who listen.

import { uniqueText } from '../../core/key.ts'
import { giveBack } from '../../core/takeover.ts'
import type { Rewrite } from '../../core/rewrite.ts'
import { holds, isTerminal, type Lease, type Run } from '../../core/run.ts'
import { steer, type Steered, type SteerRequest } from '../../core/steering.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'
import { readRun } from './reading.ts'

const rewriteSql = `
  update runs set type = ?, version = ?, unique_key = ?, status = ?, readiness = ?, due = ?, seq = ?, base = ?, wish = ?,
    undo = ?, crashes = ?, token = ?, session = ?, deadline = ?, timeout_at = ?, expires_at = ?, updated_at = ?,
    ended_at = ?, deleted_at = ?, delete_reason = ?
  where shard = 0 and id = ?`

/** Appends the entries and makes the row what it shall be. */
export function rewriteRun(batch: Batch, before: Run, { run, append }: Rewrite, transition: string | null): void {
  batch.append(run.id, before.seq, append, transition)
  const { type, version, status, readiness, due, seq, base, undo, crashes, token, session, deadline } = run
  const wish = run.wish === null ? null : JSON.stringify(run.wish)
  const place = [type, version, uniqueText(run), status, readiness, due, seq, base, wish, undo]
  const lease = [crashes, token, session, deadline]
  const times = [run.timeoutAt, run.expiresAt, run.updatedAt, run.endedAt]
  batch.db.run(rewriteSql, [...place, ...lease, ...times, run.deletedAt, run.deleteReason, run.id])
  if (isTerminal(run.status) && !isTerminal(before.status)) batch.ended(run.id)
  if (run.readiness === 'ready' || run.readiness === 'timed') batch.ready(run.type)
}

/** Does what people ask of runs. What one request made of a run is what the next one finds. */
export function steerRuns(batch: Batch, requests: readonly SteerRequest[]): readonly Steered[] {
  // Entries of this batch are not in the table yet.
  const appended = new Set<string>()
  return requests.map((request): Steered => {
    const { db, now } = batch
    const { id, runId } = request
    const run = readRun(db, runId)
    if (run === undefined) return { outcome: 'not-found' }
    if (appended.has(`${runId} ${id}`) || hasTransition(db, runId, id)) return { outcome: 'done', run }
    const { answer, write } = steer(run, request, now, request.kind === 'retry' ? keyHolder(db, run) : null)
    if (write !== null) {
      rewriteRun(batch, run, write, id)
      if (write.append.length > 0) appended.add(`${runId} ${id}`)
    }
    return answer
  })
}

/** Gives a lease back; a lost one is passed over. */
export function releaseOne(batch: Batch, lease: Lease & { readonly runId: string }): void {
  const run = readRun(batch.db, lease.runId)
  if (run !== undefined && holds(run, lease)) rewriteRun(batch, run, giveBack(run, batch.now), null)
}

export const keyHolderSql = `
  select id from runs
  where shard = 0 and unique_key = ? and unique_key is not null and ended_at is null and deleted_at is null and id <> ?`

/** The live run, other than this one, that has the business key which this one has or would have. */
export function keyHolder(db: Connection, run: Run): string | null {
  const text = uniqueText(run)
  if (text === null) return null
  return (db.get(keyHolderSql, [text, run.id])?.['id'] as string | undefined) ?? null
}

function hasTransition(db: Connection, runId: string, id: string): boolean {
  const sql = 'select 1 from journal where shard = 0 and run_id = ? and transition_id = ?'
  return db.get(sql, [runId, id]) !== undefined
}
