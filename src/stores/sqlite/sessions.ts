// Who is alive. A session opens with its first beat and lives until its time runs out and somebody notices, or until it
// ends itself. It never comes back, so its row stays.

import type { Wish } from '../../core/run.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'
import { wishOf } from './rows.ts'

export function beat(batch: Batch, request: BeatRequest): Beat {
  const { session, held = [] } = request
  const alive = keepAlive(batch, request)
  const lost = alive ? lostOf(batch, session, held) : held.map(({ runId }) => runId)
  const mail = mailOf(batch, held, new Set(lost))
  return { alive, lost, ...noticesOf(batch, session, held), mail, now: batch.now }
}

function keepAlive({ db, now }: Batch, { session, leaseMs, end = false }: BeatRequest): boolean {
  const row = db.get(
    `insert into sessions (shard, id, opened_at, alive_until, ended_at) values (0, ?, ?, ?, ?)
     on conflict (shard, id) do update set
       alive_until = case when ended_at is null then excluded.alive_until else alive_until end,
       ended_at = coalesce(ended_at, excluded.ended_at)
     returning ended_at`,
    [session, now, end ? now : now + leaseMs, end ? now : null],
  )
  return row?.['ended_at'] === null
}

/** That a run is on a list of ids: in this form SQLite and Turso both go along the index. */
export const isListed = `rowid in (
  select run.rowid from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.id = cast(one.value as text))`

/** What is left over is told with the next beat. */
const straysAtOnce = 100

export const lostSql = `
  select one.key as place from json_each(?) as one where not exists (
    select 1 from runs where shard = 0 and id = one.value ->> 0 and token = one.value ->> 1 and session = ?
      and status in ('running', 'cancelling'))`

export const extendSql = `update runs set deadline = ? where ${isListed}`

/** Which of them the session holds no more. Those that it holds, and that ask for it, get their new deadline. */
function lostOf({ db, now }: Batch, session: string, held: readonly HeldClaim[]): readonly string[] {
  if (held.length === 0) return []
  const claims = JSON.stringify(held.map(({ runId, token }) => [runId, token]))
  const places = new Set(db.all(lostSql, [claims, session]).map((row) => row['place'] as number))
  const lost: string[] = []
  const extended = new Map<number, string[]>()
  for (const [place, { runId, extendMs }] of held.entries()) {
    if (places.has(place)) lost.push(runId)
    else if (extendMs !== null) {
      const together = extended.get(extendMs)
      if (together === undefined) extended.set(extendMs, [runId])
      else together.push(runId)
    }
  }
  // Mostly one: a type has one length of its claims, and few types have any.
  for (const [ms, ids] of extended) db.run(extendSql, [now + ms, JSON.stringify(ids)])
  return lost
}

export const mailSql = `
  select one.key as place, run.inbox from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.id = cast(one.value ->> 0 as text) and run.inbox > (one.value ->> 1)`

/** Those of them that have more mail than their holder knows of. */
function mailOf({ db }: Batch, held: readonly HeldClaim[], lost: ReadonlySet<string>): Beat['mail'] {
  const asking = held.filter(({ runId, inbox }) => inbox !== undefined && !lost.has(runId))
  if (asking.length === 0) return []
  const known = JSON.stringify(asking.map(({ runId, inbox }) => [runId, inbox]))
  const rows = db.all(mailSql, [known]) as unknown as { readonly place: number; readonly inbox: number }[]
  const inboxes = new Map(rows.map(({ place, inbox }) => [place, inbox]))
  return asking.flatMap(({ runId }, place) => {
    const inbox = inboxes.get(place)
    return inbox === undefined ? [] : [{ runId, inbox }]
  })
}

/**
 * One statement for all three, because every process asks it every few seconds, and mostly there is none of them. SQLite
 * finds these indexes by itself; Turso must be told.
 */
export const noticesSql = `
  select 'wished' as what, id, wish, token from runs indexed by runs_wished
  where shard = 0 and session = ? and wish is not null
  union all
  select 'timed out', id, null, token from runs indexed by runs_timeout
  where shard = 0 and timeout_at is not null and timeout_at <= ? and ended_at is null and deleted_at is null
    and session = ? and status = 'running'
  union all
  select * from (
    select 'stray', id, null, token from runs indexed by runs_held
    where shard = 0 and session is not null and session = ? and status in ('running', 'cancelling')
      and id not in (select value from json_each(?))
    order by id limit ${straysAtOnce})`

interface NoticeRow {
  readonly what: 'wished' | 'timed out' | 'stray'
  readonly id: string
  readonly wish: string | null
  readonly token: number
}

type Notices = Pick<Beat, 'wished' | 'timedOut' | 'strays'>

function noticesOf({ db, now }: Batch, session: string, held: readonly HeldClaim[]): Notices {
  const listed = JSON.stringify(held.map(({ runId }) => runId))
  const rows = db.all(noticesSql, [session, now, session, session, listed]) as unknown as NoticeRow[]
  rows.sort((a, b) => (a.id < b.id ? -1 : 1))
  const of = (what: NoticeRow['what']): readonly NoticeRow[] => rows.filter((row) => row.what === what)
  return {
    wished: of('wished').map(({ id, wish }) => ({ runId: id, wish: wishOf(wish) as Wish })),
    timedOut: of('timed out').map(({ id }) => id),
    strays: of('stray').map(({ id, token }) => ({ runId: id, token })),
  }
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
