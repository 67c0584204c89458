// Takeover. A run is taken from its holder when the holder's session is dead or the holder is past the claim's deadline;
// it gets a `crashed` entry and is pending again, or fails after too many crashes. A run that nobody holds fails when its
// time is over. Whoever takes a run over moves it out of the lookup that found it, so that batch after batch comes to an
// end; each lookup walks an index in a fixed order.

import type { Draft } from '../../core/entry.ts'
import type { Run } from '../../core/run.ts'
import type { Rescued, RescueFailure, RescueRequest, TakenOver } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'
import { runOf } from './rows.ts'

export const orphansSql = `
  select * from runs as run
  where shard = 0 and session is not null and status = 'running' and not exists (
    select 1 from sessions where shard = 0 and id = run.session and ended_at is null)
  order by session, id limit ?`

export const overdueSql = `
  select * from runs
  where shard = 0 and deadline <= ? and status = 'running'
  order by deadline, id limit ?`

export const timedOutSql = `
  select * from runs
  where shard = 0 and timeout_at <= ? and ended_at is null and session is null and status <> 'paused'
  order by timeout_at, id limit ?`

export const expiredSql = `
  select * from runs
  where shard = 0 and expires_at <= ? and session is null and status <> 'paused'
  order by expires_at, id limit ?`

/** When the next of each kind runs out that is not over yet, and whether somebody holds something without a live session. */
export const nextSql = `
  select
    (select min(alive_until) from sessions where shard = 0 and ended_at is null) as session,
    (select min(deadline) from runs where shard = 0 and deadline is not null) as deadline,
    (select timeout_at from runs
      where shard = 0 and timeout_at is not null and ended_at is null and session is null and status <> 'paused'
      order by timeout_at limit 1) as timeout,
    (select expires_at from runs
      where shard = 0 and expires_at is not null and session is null and status <> 'paused'
      order by expires_at limit 1) as expiry,
    exists (select 1 from runs as run
      where shard = 0 and session is not null and status = 'running' and not exists (
        select 1 from sessions where shard = 0 and id = run.session and ended_at is null)) as orphaned`

export interface Outlook {
  readonly next: number | null
  /** There is nothing to do now. */
  readonly quiet: boolean
  readonly sessionsExpired: boolean
  readonly now: number
}

/** Looks without the write lock: a rescue that finds nothing disturbs nobody. */
export function outlook(db: Connection, now: number): Outlook {
  const row = db.get(nextSql, []) as Readonly<Record<string, number | null>> | undefined
  const session = row?.['session'] ?? null
  const times = [session, row?.['deadline'], row?.['timeout'], row?.['expiry']].filter(
    (time) => typeof time === 'number',
  )
  const next = times.length === 0 ? null : Math.min(...times)
  const quiet = row?.['orphaned'] === 0 && (next === null || next > now)
  return { next, quiet, sessionsExpired: session !== null && session <= now, now }
}

export function rescueRuns(batch: Batch, request: RescueRequest): Pick<Rescued, 'takenOver' | 'failed' | 'more'> {
  const takenOver: TakenOver[] = []
  const failed: { runId: string; type: string; reason: RescueFailure }[] = []
  const found = new Map<string, Run>()
  for (const [sql, values] of [
    [orphansSql, []],
    [overdueSql, [batch.now]],
    [timedOutSql, [batch.now]],
    [expiredSql, [batch.now]],
  ] as const) {
    const left = request.limit - found.size
    if (left > 0) for (const row of batch.db.all(sql, [...values, left])) found.set(row['id'] as string, runOf(row))
  }
  for (const run of found.values()) {
    const { id: runId, type, session } = run
    const crashes = Math.max(run.crashes, 1)
    const reason = reasonToFail(run, crashes, request, batch.now)
    const append: Draft[] = []
    // A holder that committed something and then died has crashed once, too.
    if (session !== null) append.push({ kind: 'crashed', name: null, meta: { session, crashes }, data: null })
    if (reason !== null) append.push({ kind: 'failed', name: null, meta: null, data: request.failures[reason] })
    batch.append(runId, run.seq, append, null)
    const seq = run.seq + append.length
    if (reason !== null) {
      fail(batch, runId, seq, session === null ? run.crashes : crashes)
      failed.push({ runId, type, reason })
    } else if (session !== null) {
      free(batch, runId, seq, crashes)
      batch.ready(type)
      takenOver.push({ runId, type, session, crashes })
    }
  }
  return { takenOver, failed, more: found.size >= request.limit }
}

function reasonToFail(run: Run, crashes: number, { maxCrashes }: RescueRequest, now: number): RescueFailure | null {
  if (run.session !== null && crashes >= maxCrashes) return 'crashed'
  if (run.timeoutAt !== null && run.timeoutAt <= now) return 'timed-out'
  return run.session === null ? 'expired' : null
}

function free({ db, now }: Batch, id: string, seq: number, crashes: number): void {
  db.run(
    `update runs set status = 'pending', readiness = 'ready', due = ?, session = null, deadline = null, seq = ?,
       crashes = ?, updated_at = ?
     where shard = 0 and id = ?`,
    [now, seq, crashes, now, id],
  )
}

function fail(batch: Batch, id: string, seq: number, crashes: number): void {
  const { db, now } = batch
  db.run(
    `update runs set status = 'failed', readiness = 'idle', due = null, session = null, deadline = null,
       expires_at = null, seq = ?, crashes = ?, updated_at = ?, ended_at = ?
     where shard = 0 and id = ?`,
    [seq, crashes, now, now, id],
  )
  batch.ended(id)
}
