// The sessions. A session opens with its first heartbeat and lives until its time runs out and a rescue notices, or until it
// ends itself. It never comes back, so its row stays.

import { unknownLeasesAtOnce } from '../../../core/rules/claims/heartbeat.ts'
import type { Clock } from '../../../core/runtime/ports.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from '../driver/connection.ts'
import { controlRequestOf } from '../schema/rows.ts'
import { nowExpression, nowSql } from '../driver/settings.ts'

export function beat(db: Connection, clock: Pick<Clock, 'now'> | undefined, request: BeatRequest): Beat {
  const { session, held = [], seeksUnknownLeases = true } = request
  const { alive, now } = keepAlive(db, clock, request)
  const listedAnswer = listedOf(db, now, session, held, alive)
  if (alive) extend(db, now, held, listedAnswer.lost)
  const unlisted = seeksUnknownLeases
    ? unlistedOf(db, now, session, held)
    : { unknownLeases: [], controlRequests: [], timedOut: [] }
  return {
    alive,
    lost: listedAnswer.lost.map(({ runId }) => runId),
    unknownLeases: unlisted.unknownLeases,
    controlRequests: onceById([...listedAnswer.controlRequests, ...unlisted.controlRequests], ({ runId }) => runId),
    messages: listedAnswer.messages,
    timedOut: onceById([...listedAnswer.timedOut, ...unlisted.timedOut], (runId) => runId),
    now,
  }
}

interface Kept {
  readonly alive: boolean
  readonly now: number
}

/** One statement, which also tells the time: every process beats all the time, most of them with nothing else to say. */
function keepAlive(
  db: Connection,
  clock: Pick<Clock, 'now'> | undefined,
  { session, leaseMs, end = false }: BeatRequest,
): Kept {
  const now = clock?.now() ?? null
  const time = `coalesce(?, ${nowExpression})`
  const row = db.get(
    `insert into sessions (shard, id, opened_at, alive_until, ended_at)
     values (0, ?, ${time}, ${time} + ?, case when ? then ${time} end)
     on conflict (shard, id) do update set
       alive_until = case when ended_at is null then excluded.alive_until else alive_until end,
       ended_at = coalesce(ended_at, excluded.ended_at)
     returning alive_until, ended_at`,
    [session, now, now, end ? 0 : leaseMs, end ? 1 : 0, now],
  ) as { readonly alive_until: number; readonly ended_at: number | null } | undefined
  const alive = row?.ended_at === null
  // Of a session that has ended, the row tells another time.
  const listedAnswer = alive ? (row?.alive_until ?? 0) - leaseMs : (db.get(nowSql, [])?.['now'] as number)
  return { alive, now: now ?? listedAnswer }
}

/** That a run is on a list of ids: in this form SQLite and Turso both go along the index. */
export const isListed = `rowid in (
  select run.rowid from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.id = cast(one.value as text))`

/** The answers about listed runs: each is looked up by its id. Mostly there are none. */
export const listedSql = `
  select * from (
    select one.key as place, run.control_request, run.inbox,
      run.session is ? as mine,
      run.session is ? and run.token = one.value ->> 1 and run.status in ('running', 'cancelling') as held,
      run.session is ? and run.status = 'running' and run.deleted_at is null
        and run.timeout_at is not null and run.timeout_at <= ? as over,
      one.value ->> 2 as known
    from json_each(?) as one left join runs as run on run.shard = 0 and run.id = cast(one.value ->> 0 as text)) as judged
  where coalesce(held, 0) = 0 or over or (mine and control_request is not null) or inbox > known`

interface LookRow {
  readonly place: number
  readonly control_request: string | null
  readonly inbox: number | null
  readonly mine: number | null
  readonly held: number | null
  readonly over: number | null
  readonly known: number | null
}

export const extendSql = `update runs set deadline = ? where ${isListed}`

const begunSql = 'update runs set crashes = ? where shard = 0 and id = ?'

interface Listed extends Pick<Beat, 'messages' | 'controlRequests' | 'timedOut'> {
  readonly lost: readonly HeldClaim[]
}

function listedOf(db: Connection, now: number, session: string, held: readonly HeldClaim[], alive: boolean): Listed {
  if (held.length === 0) return { lost: [], messages: [], controlRequests: [], timedOut: [] }
  const claims = JSON.stringify(held.map(({ runId, token, inbox }) => [runId, token, inbox ?? null]))
  const rows = db.all(listedSql, [session, session, session, now, claims]) as unknown as LookRow[]
  const byPlace = new Map(rows.map((row) => [row.place, row]))
  const listedAnswer = held.map((claim, place) => ({ claim, runId: claim.runId, row: byPlace.get(place) }))
  const isLost = (row: LookRow | undefined): boolean => !alive || (row !== undefined && row.held !== 1)
  return {
    lost: listedAnswer.filter(({ row }) => isLost(row)).map(({ claim }) => claim),
    messages: listedAnswer.flatMap(({ runId, row }) => {
      const inbox = row?.inbox ?? null
      const isNews = inbox !== null && (row?.known ?? null) !== null && inbox > (row?.known ?? 0) && !isLost(row)
      return isNews ? [{ runId, inbox }] : []
    }),
    controlRequests: listedAnswer.flatMap(({ runId, row }) => {
      const controlRequest = row?.mine === 1 ? controlRequestOf(row.control_request) : null
      return controlRequest === null ? [] : [{ runId, controlRequest }]
    }),
    timedOut: listedAnswer.filter(({ row }) => row?.over === 1).map(({ runId }) => runId),
  }
}

/** Those that are held get their new deadline, or the mark that they have begun. */
function extend(db: Connection, now: number, held: readonly HeldClaim[], lost: readonly HeldClaim[]): void {
  const gone = new Set(lost)
  const extended = new Map<number, string[]>()
  for (const claim of held) {
    if (gone.has(claim)) continue
    const { runId, extendMs, begun } = claim
    // A suspect begins alone.
    if (begun !== undefined) db.run(begunSql, [begun, runId])
    if (extendMs !== null) {
      const together = extended.get(extendMs)
      if (together === undefined) extended.set(extendMs, [runId])
      else together.push(runId)
    }
  }
  // Mostly one: a type has one length of its claims, and few types have any.
  for (const [ms, ids] of extended) db.run(extendSql, [now + ms, JSON.stringify(ids)])
}

/** One scan of the runs that the session holds and did not list. Turso must be told of the index; SQLite would find it. */
export const unknownLeasesSql = `
  select id, token, control_request, status in ('running', 'cancelling') as held,
    status = 'running' and deleted_at is null and timeout_at is not null and timeout_at <= ? as over
  from runs indexed by runs_held
  where shard = 0 and session is not null and session = ? and id not in (select value from json_each(?))
  order by id`

interface UnknownLeaseRow {
  readonly id: string
  readonly token: number
  readonly control_request: string | null
  readonly held: number
  readonly over: number
}

type Unlisted = Pick<Beat, 'controlRequests' | 'timedOut' | 'unknownLeases'>

function unlistedOf(db: Connection, now: number, session: string, held: readonly HeldClaim[]): Unlisted {
  const listed = JSON.stringify(held.map(({ runId }) => runId))
  const rows = db.all(unknownLeasesSql, [now, session, listed]) as unknown as UnknownLeaseRow[]
  return {
    controlRequests: rows.flatMap(({ id, control_request: text }) => {
      const controlRequest = controlRequestOf(text)
      return controlRequest === null ? [] : [{ runId: id, controlRequest }]
    }),
    timedOut: rows.filter(({ over }) => over === 1).map(({ id }) => id),
    unknownLeases: rows
      .filter((row) => row.held === 1)
      .slice(0, unknownLeasesAtOnce)
      .map(({ id, token }) => ({ runId: id, token })),
  }
}

/** In the order of their ids, each once. */
function onceById<One>(all: readonly One[], idOf: (one: One) => string): readonly One[] {
  const byId = new Map(all.map((one) => [idOf(one), one]))
  return [...byId.values()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
}

export function hasEnded(db: Connection, session: string): boolean {
  const row = db.get('select 1 from sessions where shard = 0 and id = ? and ended_at is not null', [session])
  return row !== undefined
}

/** Marks those as ended that did not beat in time; answers how many. */
export function endExpired({ db, now }: Batch): number {
  const sql = 'update sessions set ended_at = ? where shard = 0 and ended_at is null and alive_until <= ?'
  return db.run(sql, [now, now])
}
