// Takeover. A run is taken from its holder when the holder's session is dead or the holder is past the claim's deadline; a
// run that no session holds is given up when its time is over. A takeover moves the run out of the lookup that found it, so
// that batch after batch comes to an end; each lookup walks an index in a fixed order.

import type { Clock } from '../../../core/runtime/ports.ts'
import type { Run } from '../../../core/model/run.ts'
import { rescuedTogether, rescueOrder, rescueRun, type RescuedRuns } from '../../../core/rules/claims/rescue.ts'
import type { RescueRequest } from '../../../store.ts'
import type { Batch } from './batch.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'
import type { Connection } from '../driver/connection.ts'
import { runOf } from '../schema/rows.ts'
import { nowExpression } from '../driver/settings.ts'

/**
 * Which runs time may end, term by term as the indexes have it: a run that is held, paused or undone is not in them, however
 * long its time has been over.
 */
const boundByTime = `session is null and status not in ('paused', 'cancelling') and undo <> 'due' and deleted_at is null
    and ended_at is null`

// The indexes are named for Turso, which does not find them by itself; SQLite would.

export const orphansSql = `
  select * from runs as run
  where shard = 0 and session is not null and status in ('running', 'cancelling') and not exists (
    select 1 from sessions where shard = 0 and id = run.session and ended_at is null)
  order by session, id limit ?`

export const overdueSql = `
  select * from runs indexed by runs_deadline
  where shard = 0 and deadline is not null and deadline <= ? and status in ('running', 'cancelling')
  order by deadline, id limit ?`

export const timedOutSql = `
  select * from runs indexed by runs_bound_timeout
  where shard = 0 and timeout_at is not null and timeout_at <= ? and ${boundByTime}
  order by timeout_at, id limit ?`

export const expiredSql = `
  select * from runs indexed by runs_bound_expiry
  where shard = 0 and expires_at is not null and expires_at <= ? and ${boundByTime}
  order by expires_at, id limit ?`

/**
 * When the next of each kind runs out that is not over yet, whether a run is held without a live session, and when the next
 * suspect is due.
 */
export const nextSql = `
  select ${nowExpression} as now,
    (select min(alive_until) from sessions where shard = 0 and ended_at is null) as session,
    (select min(deadline) from runs where shard = 0 and deadline is not null) as deadline,
    (select timeout_at from runs indexed by runs_bound_timeout
      where shard = 0 and timeout_at is not null and ${boundByTime}
      order by timeout_at limit 1) as timeout,
    (select expires_at from runs indexed by runs_bound_expiry
      where shard = 0 and expires_at is not null and ${boundByTime}
      order by expires_at limit 1) as expiry,
    exists (select 1 from runs as run
      where shard = 0 and session is not null and status in ('running', 'cancelling') and not exists (
        select 1 from sessions where shard = 0 and id = run.session and ended_at is null)) as orphaned,
    (select min(due) from runs indexed by runs_isolated where shard = 0 and readiness = 'isolated') as suspects`

export interface Outlook {
  readonly next: number | null
  /** When the next suspect is due. */
  readonly suspects: number | null
  /** There is nothing to do now. */
  readonly quiet: boolean
  readonly sessionsExpired: boolean
  readonly now: number
}

/** Looks without the write lock: a rescue that finds nothing disturbs no writer. */
export function outlook(db: Connection, clock: Pick<Clock, 'now'> | undefined): Outlook {
  const row = db.get(nextSql, []) as Readonly<Record<string, number | null>> | undefined
  // The time at which the statement was executed: a lease that is over now was seen to be.
  const now = clock?.now() ?? row?.['now'] ?? 0
  const session = row?.['session'] ?? null
  const times = [session, row?.['deadline'], row?.['timeout'], row?.['expiry']].filter(
    (time) => typeof time === 'number',
  )
  const next = times.length === 0 ? null : Math.min(...times)
  const quiet = row?.['orphaned'] === 0 && (next === null || next > now)
  const suspects = row?.['suspects'] ?? null
  return { next, suspects, quiet, sessionsExpired: session !== null && session <= now, now }
}

export function rescueRuns(batch: Batch, request: RescueRequest): RescuedRuns & { readonly more: boolean } {
  const found = new Map<string, Run>()
  let more = false
  for (const [sql, values] of [
    [orphansSql, []],
    [overdueSql, [batch.now]],
    [timedOutSql, [batch.now]],
    [expiredSql, [batch.now]],
  ] as const) {
    const left = request.limit - found.size
    const rows = left > 0 ? batch.db.all(sql, [...values, left]) : []
    for (const row of rows) found.set(row['id'] as string, runOf(row))
    // A lookup may find a run again that another one found; if it was cut, there may be more behind it.
    more ||= rows.length >= left
  }
  const work = new SqliteUnitOfWork(batch)
  const inOrder = [...found.values()].toSorted(rescueOrder)
  return { ...rescuedTogether(inOrder.map(({ id }) => rescueRun(work, work.run(id), request))), more }
}
