// Who is alive. A session opens with its first beat and lives until its time runs out and somebody notices, or until it
// ends itself. It never comes back, so its row stays.

import type { Beat, BeatRequest } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Connection } from './connection.ts'

export function beat(batch: Batch, request: BeatRequest): Beat {
  const { session, extend = [] } = request
  const alive = keepAlive(batch, request)
  const lost = extend.filter((one) => !(alive && extendOne(batch, session, one))).map(({ runId }) => runId)
  return { alive, lost, timedOut: timedOutOf(batch, session), now: batch.now }
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

function extendOne(
  { db, now }: Batch,
  session: string,
  { runId, token, ms }: { readonly runId: string; readonly token: number; readonly ms: number },
): boolean {
  const changed = db.run(
    `update runs set deadline = ?
     where shard = 0 and id = ? and session = ? and token = ? and status in ('running', 'cancelling')`,
    [now + ms, runId, session, token],
  )
  return changed === 1
}

function timedOutOf({ db, now }: Batch, session: string): readonly string[] {
  const sql = `
    select id from runs where shard = 0 and timeout_at <= ? and ended_at is null and session = ? order by id`
  return db.all(sql, [now, session]).map((row) => row['id'] as string)
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
