// Handing out what is due. One lookup per selector, each along the index of those that are ready; the first of all of
// them are leased. What has come due meanwhile is first moved from the timed ones to the ready ones.

import type { Run } from '../../core/run.ts'
import type { Claimed, ClaimRequest, ClaimSelector } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'
import { runOf } from './rows.ts'
import { hasEnded, isListed } from './sessions.ts'

/** At most so many come due in one claim, so that a long standstill does not become a long transaction. */
const promotedAtOnce = 10_000

export const readySql = `
  select * from runs
  where shard = 0 and type = ? and version = ? and readiness = 'ready'
    and (timeout_at is null or timeout_at > ?) and (expires_at is null or expires_at > ?)
  order by priority desc, due, id limit ?`

export const promoteSql = `
  update runs set readiness = 'ready' where rowid in (
    select rowid from runs
    where shard = 0 and type = ? and version = ? and readiness = 'timed' and due <= ?
    order by due, id limit ${promotedAtOnce})`

/** One statement for all types: others' heartbeats make an idle worker look again, and it may have a hundred types. */
export const lookSql = `
  with one as (select value ->> 0 as type, value ->> 1 as version from json_each(?))
  select
    exists (select 1 from one where exists (select 1 from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'ready')) as ready,
    exists (select 1 from one where exists (select 1 from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'timed' and due <= ?)) as due,
    (select min((select min(due) from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'timed' and due > ?)) from one) as next`

interface Look {
  /** There is something to be claimed, or to be promoted. */
  readonly more: boolean
  readonly nextDue: number | null
}

/** Looks without the write lock whether a claim is worth its while: an idle worker disturbs nobody. */
export function look(db: Connection, { selectors }: ClaimRequest, now: number): Look {
  const types = JSON.stringify(selectors.map(({ type, version }) => [type, version]))
  const row = db.get(lookSql, [types, now, now])
  return {
    more: row?.['ready'] === 1 || row?.['due'] === 1,
    nextDue: (row?.['next'] as number | null | undefined) ?? null,
  }
}

export function claimRuns(batch: Batch, { session, selectors, limit }: ClaimRequest): Claimed {
  const { db, now } = batch
  const distinct = new Map(selectors.toReversed().map((one) => [`${one.version} ${one.type}`, one]))
  const allowed = hasEnded(db, session) ? 0 : limit
  const found: { readonly run: Run; readonly leaseMs: number | null }[] = []
  let nextDue: number | null = null
  for (const selector of distinct.values()) {
    promote(batch, selector)
    // One more than is allowed, to know whether some are left.
    for (const run of readyRuns(batch, selector, allowed + 1)) found.push({ run, leaseMs: selector.leaseMs ?? null })
    nextDue = earlier(nextDue, nextDueOf(db, selector))
  }
  if (distinct.size > 1) found.sort((a, b) => claimOrder(a.run, b.run))
  const leased = new Map<number | null, string[]>()
  const runs = found.slice(0, allowed).map(({ run, leaseMs }): Run => {
    const deadline = leaseMs === null ? null : now + leaseMs
    const together = leased.get(deadline)
    if (together === undefined) leased.set(deadline, [run.id])
    else together.push(run.id)
    const { token, crashes } = run
    const status = run.status === 'cancelling' ? 'cancelling' : 'running'
    const lease = { status, readiness: 'leased', due: null, expiresAt: null, session, deadline } as const
    return { ...run, ...lease, token: token + 1, crashes: crashes + 1 }
  })
  for (const [deadline, ids] of leased) leaseAll(db, ids, session, deadline)
  return { runs, more: found.length > allowed, nextDue, now }
}

function promote({ db, now }: Batch, { type, version }: ClaimSelector): void {
  db.run(promoteSql, [type, version, now])
}

function readyRuns({ db, now }: Batch, { type, version }: ClaimSelector, limit: number): readonly Run[] {
  return db.all(readySql, [type, version, now, now, limit]).map(runOf)
}

function nextDueOf(db: Connection, { type, version }: ClaimSelector): number | null {
  const sql = `select min(due) as due from runs where shard = 0 and type = ? and version = ? and readiness = 'timed'`
  return (db.get(sql, [type, version])?.['due'] as number | null | undefined) ?? null
}

/** One statement for all: measured, a statement for each run costs a claim a third of its speed. */
function leaseAll(db: Connection, ids: readonly string[], session: string, deadline: number | null): void {
  db.run(
    `update runs set status = case status when 'cancelling' then status else 'running' end, readiness = 'leased',
       due = null, session = ?, token = token + 1, crashes = crashes + 1, deadline = ?, expires_at = null
     where ${isListed}`,
    [session, deadline, JSON.stringify(ids)],
  )
}

/** Higher priority first, then longer due, then the lower id. */
function claimOrder(a: Run, b: Run): number {
  return b.priority - a.priority || (a.due ?? 0) - (b.due ?? 0) || (a.id < b.id ? -1 : 1)
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null || (b !== null && b < a) ? b : a
}
