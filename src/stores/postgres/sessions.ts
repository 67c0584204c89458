// Who is alive. A session opens with its first beat and lives until its time runs out and somebody notices, or until it
// ends itself. It never comes back, so its row stays. Sessions lie in shard 0, what they hold in any.

import type { Wish } from '../../core/run.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../store.ts'
import { assertClient, minClientOf } from './client-version.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution, Row, Transactions } from './execution.ts'
import { wishOf } from './rows.ts'
import { byShard, everyShard } from './shards.ts'

/** What is left over is told with the next beat. */
const straysAtOnce = 100

export interface Sessions {
  beat(transactions: Transactions, request: BeatRequest): Promise<Beat>
}

interface Claim extends HeldClaim {
  readonly place: number
}

type Notice =
  | { readonly what: 'lost'; readonly place: number }
  | { readonly what: 'stray'; readonly runId: string; readonly token: number }
  | { readonly what: 'wished'; readonly runId: string; readonly wish: Wish }
  | { readonly what: 'mail'; readonly place: number; readonly inbox: number }
  | { readonly what: 'timed out'; readonly runId: string }

export function sessions(dialect: Dialect): Sessions {
  const { schema, now } = dialect
  const shards = everyShard(dialect)
  const clock = `clock as materialized (select ${now} as now)`
  const isHeld = `run.status in ('running', 'cancelling')`
  const keep = statement(
    'beat.session',
    `
    with ${clock}
    insert into ${schema}.sessions as session (shard, id, opened_at, alive_until, ended_at)
    select $1::smallint, given.id, now, case when given.ends then now else (now + given.lease)::bigint end,
      case when given.ends then now end
    from clock cross join json_to_record($2::text::json) as given (id text, lease numeric, ends boolean)
    on conflict (shard, id) do update set
      alive_until = case when session.ended_at is null then excluded.alive_until else session.alive_until end,
      ended_at = coalesce(session.ended_at, excluded.ended_at)
    returning ended_at is null as alive, (select now from clock) as now, ${minClientOf(schema)} as min_client`,
  )
  const asked = `asked as materialized (
      select * from json_to_recordset($2::text::json -> 'held')
        as asked (place integer, id uuid, token bigint, extend numeric, inbox integer))`
  const session = `($2::text::json ->> 'session')`
  // The holder is judged when the row is locked: what a look before it found may be gone.
  const extend = statement(
    'beat.extend',
    `
    with ${clock}, ${asked}, locked as materialized (
      select run.id, asked.extend from (select * from asked order by id) as asked cross join lateral (
        select run.id from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = asked.id and run.token = asked.token and run.session = ${session}
          and ${isHeld}
        for no key update) as run)
    update ${schema}.runs as run set deadline = ((select now from clock) + locked.extend)::bigint from locked
    where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id`,
  )
  // One walk over what the session holds, and mostly nothing to tell.
  const look = statement(
    'beat.look',
    `
    with ${clock}, ${asked}, mine as materialized (
      select run.id, run.token, run.status, run.wish, run.timeout_at, run.deleted_at, run.inbox,
        ${isHeld} as held
      from ${schema}.runs as run where run.shard = $1::smallint and run.session = ${session})
    select 'lost' as what, null::uuid as id, null::text as wish, null::bigint as token, asked.place
    from asked left join mine on mine.id = asked.id and mine.token = asked.token and mine.held where mine.id is null
    union all
    select 'mail', mine.id, null, mine.inbox, asked.place
    from asked join mine on mine.id = asked.id and mine.token = asked.token and mine.held
    where mine.inbox > asked.inbox
    union all
    select 'wished', id, wish, null, null from mine where wish is not null
    union all
    select 'timed out', id, null, null, null from mine cross join clock
    where status = 'running' and deleted_at is null and timeout_at <= now
    union all
    (select 'stray', id, null, token, null from mine
    where held and not exists (select 1 from asked where asked.id = mine.id)
    order by id limit ${straysAtOnce})`,
  )

  async function lookAll(
    x: Execution,
    id: string,
    held: ReadonlyMap<number, readonly Claim[]>,
  ): Promise<readonly Notice[]> {
    const answers = await Promise.all(
      shards.map((shard) => x.execute(look, [shard, heldJson(id, held.get(shard) ?? [])])),
    )
    return answers.flat().sort(byId).map(noticeOf)
  }

  async function beatOnce(x: Execution, request: BeatRequest): Promise<Beat & { readonly minClient: unknown }> {
    const { session: id, leaseMs, held = [], end = false } = request
    const claims = byShard(
      dialect,
      held.map((claim, place) => ({ ...claim, place })),
      ({ runId }) => runId,
    )
    const kept = x.execute(keep, [0, JSON.stringify({ id, lease: leaseMs, ends: end })])
    const extended = extendable(claims)
    // Only who is alive moves a deadline; without one, nothing waits for the answer.
    const isMoving = extended.length > 0 && (await kept)[0]?.['alive'] === true
    const moved = isMoving ? extended.map(([shard, some]) => x.execute(extend, [shard, heldJson(id, some)])) : []
    const [[row], notices] = await Promise.all([kept, lookAll(x, id, claims), ...moved])
    const alive = row?.['alive'] === true
    // Runs of which this store can have none are not in any shard.
    const known = new Set([...claims.values()].flat().map(({ place }) => place))
    const gone = new Set(notices.flatMap((one) => (one.what === 'lost' ? [one.place] : [])))
    return {
      alive,
      lost: held.filter((_, place) => !alive || !known.has(place) || gone.has(place)).map(({ runId }) => runId),
      strays: notices
        .flatMap((one) => (one.what === 'stray' ? [{ runId: one.runId, token: one.token }] : []))
        .slice(0, straysAtOnce),
      wished: notices.flatMap((one) => (one.what === 'wished' ? [{ runId: one.runId, wish: one.wish }] : [])),
      mail: notices
        .flatMap((one) => (alive && one.what === 'mail' ? [one] : []))
        .sort((a, b) => a.place - b.place)
        .map(({ place, inbox }) => ({ runId: held[place]?.runId ?? '', inbox })),
      timedOut: notices.flatMap((one) => (one.what === 'timed out' ? [one.runId] : [])),
      now: Number(row?.['now']),
      minClient: row?.['min_client'],
    }
  }

  return {
    async beat(transactions, request) {
      const { minClient, ...beat } = await transactions.transaction('beat.commit', (x) => beatOnce(x, request))
      // Said when the lease has been kept: whoever must leave has that long to end what it does. Goodbyes are always taken.
      if (request.end !== true) assertClient(minClient)
      return beat
    },
  }
}

/** The claims whose deadlines are to be moved, each once: the last word counts. */
function extendable(held: ReadonlyMap<number, readonly Claim[]>): readonly (readonly [number, readonly Claim[]])[] {
  return Array.from(held, ([shard, claims]) => {
    const asking = claims.filter(({ extendMs }) => extendMs !== null)
    return [shard, [...new Map(asking.map((one) => [`${one.token} ${one.runId}`, one])).values()]] as const
  }).filter(([, claims]) => claims.length > 0)
}

function heldJson(session: string, claims: readonly Claim[]): string {
  const held = claims.map(({ place, runId, token, extendMs, inbox }) => {
    const claim = { place, id: runId, token, extend: extendMs }
    return inbox === undefined ? claim : { ...claim, inbox }
  })
  return JSON.stringify({ session, held })
}

function byId(a: Row, b: Row): number {
  return String(a['id']) < String(b['id']) ? -1 : 1
}

function noticeOf(row: Row): Notice {
  const runId = row['id'] as string
  switch (row['what']) {
    case 'lost':
      return { what: 'lost', place: Number(row['place']) }
    case 'mail':
      return { what: 'mail', place: Number(row['place']), inbox: Number(row['token']) }
    case 'stray':
      return { what: 'stray', runId, token: Number(row['token']) }
    case 'wished':
      return { what: 'wished', runId, wish: wishOf(row['wish'] as string) as Wish }
    default:
      return { what: 'timed out', runId }
  }
}
