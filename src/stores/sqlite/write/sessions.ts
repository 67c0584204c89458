// The sessions. A session opens with its first heartbeat and lives until its time runs out and a rescue notices, or until it
// ends itself. It never comes back: when its row is gone, a heartbeat that does not open finds that it has ended.

import { endedSessionKeptMs, sessionsForgottenAtOnce } from '../../../core/model/heartbeat.ts'
import type { RunStatus } from '../../../core/model/run.ts'
import {
  answerBeat,
  answerListed,
  answerUnlisted,
  lostPlaces,
  nothingUnlisted,
  type BeatRow,
  type ListedAnswer,
  type UnlistedAnswer,
} from '../../../core/rules/claims/heartbeat.ts'
import type { Clock } from '../../../core/runtime/ports.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from '../driver/connection.ts'
import { controlRequestOf } from '../schema/rows.ts'
import { nowExpression, nowSql } from '../driver/settings.ts'

export function beat(db: Connection, clock: Pick<Clock, 'now'> | undefined, request: BeatRequest): Beat {
  const { session, held = [], seeksUnknownLeases = true, end = false } = request
  const { alive, now } = keepAlive(db, clock, request)
  if (end) forgetSessions(db, now)
  const listed = listedOf(db, now, session, held)
  const lost = lostPlaces(request, alive, listed)
  if (alive) {
    const isHeld = (_: HeldClaim, place: number): boolean => !lost.has(place)
    extend(db, now, held.filter(isHeld))
  }
  const unlisted = seeksUnknownLeases ? unlistedOf(db, now, session, held) : nothingUnlisted
  return answerBeat(request, alive, { listed, unlisted }, now)
}

interface Kept {
  readonly alive: boolean
  readonly now: number
}

/** One statement, which also reads the time: every process beats all the time, most of them with nothing else to say. */
function keepAlive(
  db: Connection,
  clock: Pick<Clock, 'now'> | undefined,
  { session, leaseMs, opens = true, end = false }: BeatRequest,
): Kept {
  const now = clock?.now() ?? null
  const time = `coalesce(?, ${nowExpression})`
  const mayInsert = opens || end
  const row = db.get(
    mayInsert
      ? `insert into sessions (shard, id, opened_at, alive_until, ended_at)
     values (0, ?, ${time}, ${time} + ?, case when ? then ${time} end)
     on conflict (shard, id) do update set
       alive_until = case when ended_at is null then excluded.alive_until else alive_until end,
       ended_at = coalesce(ended_at, excluded.ended_at)
     returning alive_until, ended_at`
      : `update sessions set alive_until = ${time} + ? where shard = 0 and id = ? and ended_at is null
     returning alive_until, ended_at`,
    mayInsert ? [session, now, now, end ? 0 : leaseMs, end ? 1 : 0, now] : [now, leaseMs, session],
  ) as { readonly alive_until: number; readonly ended_at: number | null } | undefined
  const alive = row?.ended_at === null
  // The row of an ended session has another time.
  const storeTime = alive ? (row?.alive_until ?? 0) - leaseMs : (db.get(nowSql, [])?.['now'] as number)
  return { alive, now: now ?? storeTime }
}

/** The columns that the rules of a heartbeat judge by. */
const beatColumns = ['id', 'session', 'token', 'status', 'control_request', 'inbox', 'timeout_at', 'deleted_at']
  .map((column) => `run.${column} as ${column}`)
  .join(', ')

interface BeatColumns {
  readonly id: string
  readonly session: string | null
  readonly token: number
  readonly status: RunStatus
  readonly control_request: string | null
  readonly inbox: number
  readonly timeout_at: number | null
  readonly deleted_at: number | null
}

function beatRowOf(row: BeatColumns): BeatRow {
  const { id, session, token, status, inbox, timeout_at: timeoutAt, deleted_at: deletedAt } = row
  return {
    id,
    session,
    token,
    status,
    controlRequest: controlRequestOf(row.control_request),
    inbox,
    timeoutAt,
    deletedAt,
  }
}

/** That a run is on a list of ids: in this form SQLite and Turso both go along the index. */
export const isListed = `rowid in (
  select run.rowid from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.id = cast(one.value as text))`

/**
 * The listed runs about which there may be something to report, each looked up by its id. Mostly there are none, so this leaves
 * out those that are held as listed and that nothing has happened to; the rules judge the others.
 */
export const listedSql = `
  select * from (
    select one.key as place, ${beatColumns},
      run.session is ? and run.token = one.value ->> 1 and run.status in ('running', 'cancelling') as held,
      one.value ->> 2 as known
    from json_each(?) as one left join runs as run on run.shard = 0 and run.id = cast(one.value ->> 0 as text)) as looked
  where coalesce(held, 0) = 0 or timeout_at <= ? or control_request is not null or inbox > known`

export const extendSql = `update runs set deadline = ? where ${isListed}`

const begunSql = 'update runs set crashes = ? where shard = 0 and id = ?'

/** A row without a run has only its place. */
type ListedRow = { readonly place: number } & (BeatColumns | { readonly id: null })

function listedOf(db: Connection, now: number, session: string, held: readonly HeldClaim[]): readonly ListedAnswer[] {
  if (held.length === 0) return []
  const claims = JSON.stringify(held.map(({ runId, token, inbox }) => [runId, token, inbox ?? null]))
  const rows = db.all(listedSql, [session, claims, now]) as unknown as ListedRow[]
  return rows.flatMap((row) => {
    const claim = held[row.place]
    const run = row.id === null ? undefined : beatRowOf(row)
    return claim === undefined ? [] : [answerListed(session, claim, row.place, run, now)]
  })
}

/** Those that are held get their new deadline, or the mark that they have begun. */
function extend(db: Connection, now: number, held: readonly HeldClaim[]): void {
  const extended = new Map<number, string[]>()
  for (const { runId, extendMs, begun } of held) {
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

/** One scan of the runs that the session holds and did not list. Turso needs the name of the index; SQLite would find it. */
export const unknownLeasesSql = `
  select ${beatColumns} from runs as run indexed by runs_held
  where shard = 0 and session is not null and session = ? and id not in (select value from json_each(?))
  order by id`

function unlistedOf(db: Connection, now: number, session: string, held: readonly HeldClaim[]): UnlistedAnswer {
  const listed = JSON.stringify(held.map(({ runId }) => runId))
  const rows = db.all(unknownLeasesSql, [session, listed]) as unknown as BeatColumns[]
  return answerUnlisted(rows.map(beatRowOf), now)
}

export function hasEnded(db: Connection, session: string): boolean {
  const row = db.get('select 1 from sessions where shard = 0 and id = ? and ended_at is not null', [session])
  return row !== undefined
}

/** Marks those as ended that did not beat in time; answers how many. */
export function endExpired({ db, now }: Batch): number {
  const sql = 'update sessions set ended_at = ? where shard = 0 and ended_at is null and alive_until <= ?'
  const ended = db.run(sql, [now, now])
  if (ended > 0) forgetSessions(db, now)
  return ended
}

/** But for those that a run still names. */
export const oldSessionsSql = `
  select id from sessions indexed by sessions_ended
  where shard = 0 and ended_at is not null and ended_at <= ? and not exists (
    select 1 from runs indexed by runs_held
    where shard = 0 and session is not null and session = sessions.id and status in ('running', 'cancelling'))
  order by ended_at, id limit ${sessionsForgottenAtOnce}`

export const forgetSessionsSql = 'delete from sessions where shard = 0 and id in (select value from json_each(?))'

/** Sessions have just ended: rows of others go instead, so that there are not more and more of them. */
function forgetSessions(db: Connection, now: number): void {
  const old = db.all(oldSessionsSql, [now - endedSessionKeptMs]).map(({ id }) => id)
  if (old.length > 0) db.run(forgetSessionsSql, [JSON.stringify(old)])
}
