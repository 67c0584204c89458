// Leases due runs. One lookup per selector, each along the index of ready runs; of the runs found, the types take turns. Runs
// that have come due meanwhile are first moved from the timed ones to the ready ones.

import { inClaimOrder } from '../../../core/rules/claims/claim-order.ts'
import { claimColumns, isClaimableByName, type ClaimColumns } from '../../../core/rules/claims/claim.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Claimed, ClaimRequest, ClaimSelector, Selector } from '../../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from '../driver/connection.ts'
import { readRun } from '../read/read.ts'
import { runOf } from '../schema/rows.ts'
import { hasEnded, isListed } from './sessions.ts'

/** At most this many come due in one claim, so that a long standstill does not become a long transaction. */
const promotedAtOnce = 10_000

/** A claim without a list of keys has no condition on keys. */
const isMine = `(key_id is null or key_id in (select value from json_each(?)))`
const mine = (keyed: boolean): string => (keyed ? `and ${isMine}` : '')

const readyFor = (keyed: boolean): string => `
  select * from runs
  where shard = 0 and type = ? and version = ? and readiness = 'ready'
    and (timeout_at is null or timeout_at > ?) and (expires_at is null or expires_at > ?) ${mine(keyed)}
  order by priority desc, due, id limit ?`

export const readySql = readyFor(false)
export const keyedReadySql = readyFor(true)

export const promoteSql = `
  update runs set readiness = 'ready' where rowid in (
    select rowid from runs
    where shard = 0 and type = ? and version = ? and readiness = 'timed' and due <= ?
    order by due, id limit ${promotedAtOnce})`

/** One statement for all types: others' heartbeats make an idle worker look again, and it may have a hundred types. */
const lookFor = (keyed: boolean): string => `
  with one as (select value ->> 0 as type, value ->> 1 as version from json_each(?))
  select
    exists (select 1 from one where exists (select 1 from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'ready' ${mine(keyed)})) as ready,
    exists (select 1 from one where exists (select 1 from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'timed' and due <= ?)) as due,
    (select min((select min(due) from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'timed' and due > ?)) from one) as next`

export const lookSql = lookFor(false)
export const keyedLookSql = lookFor(true)

/** Suspects are due by their own time: nothing promotes them. */
const isolatedFor = (keyed: boolean): string => `
  select * from runs indexed by runs_isolated
  where shard = 0 and type = ? and version = ? and readiness = 'isolated' and due <= ?
    and (timeout_at is null or timeout_at > ?) and (expires_at is null or expires_at > ?) ${mine(keyed)}
  order by due, id limit ?`

export const isolatedSql = isolatedFor(false)
export const keyedIsolatedSql = isolatedFor(true)

export const lookIsolatedSql = `
  with one as (select value ->> 0 as type, value ->> 1 as version from json_each(?))
  select
    exists (select 1 from one where exists (select 1 from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'isolated' and due <= ?)) as ready,
    (select min((select min(due) from runs
      where shard = 0 and type = one.type and version = one.version and readiness = 'isolated' and due > ?)) from one) as next`

interface Look {
  /** There is a run to be claimed, or to be promoted. */
  readonly more: boolean
  readonly nextDue: number | null
}

/** Looks without the write lock whether a claim is worthwhile: an idle worker delays no writer. */
export function look(db: Connection, { selectors, isolated = false, keys }: ClaimRequest, now: number): Look {
  const types = JSON.stringify(selectors.map(({ type, version }) => [type, version]))
  const row = isolated
    ? db.get(lookIsolatedSql, [types, now, now])
    : keys === undefined
      ? db.get(lookSql, [types, now, now])
      : db.get(keyedLookSql, [types, JSON.stringify(keys), now, now])
  return {
    more: row?.['ready'] === 1 || row?.['due'] === 1,
    nextDue: (row?.['next'] as number | null | undefined) ?? null,
  }
}

/** The claim of one run. */
function claimByName({ db, now }: Batch, request: ClaimRequest, runId: string): Claimed {
  const run = request.limit === 0 || hasEnded(db, request.session) ? undefined : readRun(db, runId)
  if (run === undefined || !isClaimableByName(run, request, now)) return { runs: [], more: false, nextDue: null, now }
  const claimed: Run = { ...run, ...claimColumns(run, request, now) }
  leaseAll(db, [claimed], false)
  return { runs: [claimed], more: false, nextDue: null, now }
}

export function claimRuns(batch: Batch, request: ClaimRequest): Claimed {
  if (request.runId !== undefined) return claimByName(batch, request, request.runId)
  const { session, selectors, limit, isolated = false, keys } = request
  const { db, now } = batch
  const distinct = new Map(selectors.map((one) => [nameOf(one), one]))
  const allowed = hasEnded(db, session) ? 0 : limit
  const ready: Run[] = []
  let nextDue: number | null = null
  for (const selector of distinct.values()) {
    if (!isolated) promote(batch, selector)
    // One more than is allowed, to know whether some are left.
    const find = isolated ? suspects : readyRuns
    for (const run of find(batch, selector, allowed + 1, keys)) ready.push(run)
    nextDue = earlier(nextDue, isolated ? nextIsolatedOf(batch, selector) : nextDueOf(db, selector))
  }
  // The lookup of one type is in order already.
  const found = distinct.size === 1 ? ready : inClaimOrder(ready, request)
  const runs = found.slice(0, allowed).map((run): Run => ({ ...run, ...claimColumns(run, request, now) }))
  leaseAll(db, runs, isolated)
  return { runs, more: found.length > allowed, nextDue, now }
}

function promote({ db, now }: Batch, { type, version }: ClaimSelector): void {
  db.run(promoteSql, [type, version, now])
}

function readyRuns(
  { db, now }: Batch,
  { type, version }: ClaimSelector,
  limit: number,
  keys: ClaimRequest['keys'],
): readonly Run[] {
  const found =
    keys === undefined
      ? db.all(readySql, [type, version, now, now, limit])
      : db.all(keyedReadySql, [type, version, now, now, JSON.stringify(keys), limit])
  return found.map(runOf)
}

function suspects(
  { db, now }: Batch,
  { type, version }: ClaimSelector,
  limit: number,
  keys: ClaimRequest['keys'],
): readonly Run[] {
  const found =
    keys === undefined
      ? db.all(isolatedSql, [type, version, now, now, now, limit])
      : db.all(keyedIsolatedSql, [type, version, now, now, now, JSON.stringify(keys), limit])
  return found.map(runOf)
}

function nextIsolatedOf({ db, now }: Batch, { type, version }: ClaimSelector): number | null {
  const sql = `select min(due) as due from runs indexed by runs_isolated
    where shard = 0 and type = ? and version = ? and readiness = 'isolated' and due > ?`
  return (db.get(sql, [type, version, now])?.['due'] as number | null | undefined) ?? null
}

function nextDueOf(db: Connection, { type, version }: ClaimSelector): number | null {
  const sql = `select min(due) as due from runs where shard = 0 and type = ? and version = ? and readiness = 'timed'`
  return (db.get(sql, [type, version])?.['due'] as number | null | undefined) ?? null
}

/**
 * Writes the claimed rows. Their tokens and crashes are counted where they stand, so that one statement writes all runs of one
 * status and deadline: measured, a statement for each run costs a claim a third of its speed.
 */
function leaseAll(db: Connection, runs: readonly Run[], isolated: boolean): void {
  const groups = new Map<string, { readonly columns: ClaimColumns; readonly ids: string[] }>()
  for (const run of runs) {
    const name = `${run.status} ${run.deadline}`
    const group = groups.get(name)
    if (group === undefined) groups.set(name, { columns: run, ids: [run.id] })
    else group.ids.push(run.id)
  }
  for (const { columns, ids } of groups.values()) {
    const { status, readiness, due, session, deadline, expiresAt } = columns
    const values = [status, readiness, due, session, isolated ? 0 : 1, deadline, expiresAt, JSON.stringify(ids)]
    db.run(leaseSql, values)
  }
}

/** The names that would wake a run are bound to its token: the next token makes them void. */
const leaseSql = `
  update runs set status = ?, readiness = ?, due = ?, session = ?, token = token + 1, crashes = crashes + ?, deadline = ?,
    expires_at = ?
  where ${isListed}`

function nameOf({ type, version }: Selector): string {
  return `${version} ${type}`
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null || (b !== null && b < a) ? b : a
}
