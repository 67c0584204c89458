// The sessions. A session opens with its first heartbeat and lives until its time runs out and a rescue notices, or until it
// ends itself. It never comes back: when its row is gone (`ended-sessions.ts`), a heartbeat that does not open finds that it has
// ended. Sessions are in shard 0, their runs in any.
//
// A heartbeat is committed before any other statement: a session that beats lives on, regardless of row locks. Then the
// deadlines of the listed runs are moved, skipping rows that other transactions have locked, and the listed runs are looked
// up by id, one by one: an index of all runs that a session ever held may have many entries of runs that it holds no more.
// Only a look for unknown leases scans that index, and a scan that took long is not made again for a while.
//
// The statements judge each run as `answerListed` and `answerUnlisted` of the core do, because their own clock and snapshot decide
// and only the few runs with something to report leave the database; the contract holds both to the same answers. The answer
// is made of their answers by the core.

import {
  answerBeat,
  lostPlaces,
  nothingUnlisted,
  onceById,
  unknownLeasesAtOnce,
  type ListedAnswer,
  type UnlistedAnswer,
} from '../../../core/rules/claims/heartbeat.ts'
import { isHoldfastError, isOfOneRow } from '../../../core/errors/error.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../../store.ts'
import { assertClient, minClientOf } from '../schema/client-version.ts'
import { statement, type Dialect } from '../dialect.ts'
import { createEndedSessions } from './ended-sessions.ts'
import type { Execution, Row, Transactions } from '../execution.ts'
import { WalkPace } from './walk-pace.ts'
import { controlRequestOf } from '../schema/rows.ts'
import { byShard, everyShard } from '../schema/shards.ts'
import { withoutRefused } from '../commit/refused-items.ts'
import { isLocked, sqlStateOf } from '../connection/sql-state.ts'

export interface SessionQueries {
  beat(transactions: Transactions, request: BeatRequest): Promise<Beat>
}

interface Claim extends HeldClaim {
  readonly place: number
}

type Claims = ReadonlyMap<number, readonly Claim[]>

const skippedUnlisted: UnlistedAnswer = { ...nothingUnlisted, unknownLeasesSkipped: true }

export function createSessionQueries(dialect: Dialect, monotonic: () => number): SessionQueries {
  const { schema, now, skipLocked, isSpread } = dialect
  const shards = everyShard(dialect)
  const walkPace = new WalkPace(monotonic)
  const endedSessions = createEndedSessions(dialect, 'beat')
  const clock = `clock as materialized (select ${now} as now)`
  const isHeld = `run.status in ('running', 'cancelling')`
  const parts = `given as materialized (
      select * from json_to_record($2::text::json) as given (id text, lease bigint, ends boolean))`
  const answer = isSpread
    ? 'ended_at is null as alive'
    : `ended_at is null as alive, (select now from clock) as now, ${minClientOf(schema)} as min_client`
  const open = statement(
    'beat.session',
    `
    with ${clock}, ${parts}
    insert into ${schema}.sessions as session (shard, id, opened_at, alive_until, ended_at)
    select $1::smallint, given.id, now, case when given.ends then now else now + given.lease end,
      case when given.ends then now end
    from clock cross join given
    on conflict (shard, id) do update set
      alive_until = case when session.ended_at is null then excluded.alive_until else session.alive_until end,
      ended_at = coalesce(session.ended_at, excluded.ended_at)
    returning ${answer}`,
  )
  // A session without its row has ended, and nothing is inserted.
  const keep = statement(
    'beat.session',
    `
    with ${clock}, ${parts}
    update ${schema}.sessions as session set alive_until = now + given.lease from clock cross join given
    where session.shard = $1::smallint and session.id = given.id and session.ended_at is null
    returning ${answer}`,
  )
  // Citus writes the row on every machine, and answers nothing but columns of it. Sent before: so the time is none too late.
  const ask = statement([], `select ${now} as now, ${minClientOf(schema)} as min_client`)
  const requested = `requested as materialized (
      select * from json_to_recordset($2::text::json -> 'held'::text)
        as requested (place integer, id uuid, token bigint, extend bigint, inbox integer, begun integer))`
  // Read once: a generic plan would parse the whole request again for every row that it compares.
  const who = `who as materialized (select $2::text::json ->> 'session'::text as id)`
  const session = `(select id from who)`
  // The holder is judged when the row is locked: the result of an earlier read may be outdated.
  const extend = statement(
    'beat.extend',
    `
    with ${clock}, ${who}, ${requested}, locked as materialized (
      select run.id, requested.extend, requested.begun from (select * from requested order by id) as requested cross join lateral (
        select run.id from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = requested.id and run.token = requested.token and run.session = ${session}
          and ${isHeld}
        for no key update ${skipLocked}) as run)
    update ${schema}.runs as run set
      deadline = case when locked.extend is null then run.deadline
        else (select now from clock) + locked.extend end,
      crashes = coalesce(locked.begun, run.crashes)
    from locked
    where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id
    returning run.id`,
  )
  // Judged outside of the lookup, which so goes by nothing but the id.
  const look = statement(
    'beat.look',
    `
    with ${clock}, ${who}, ${requested}, judged as materialized (
      select requested.place, requested.inbox as known, run.inbox, run.control_request,
        coalesce(run.session = ${session}, false) as mine,
        coalesce(run.session = ${session} and run.token = requested.token and ${isHeld}, false) as held,
        coalesce(run.session = ${session} and run.status = 'running' and run.deleted_at is null
          and run.timeout_at <= clock.now, false) as over
      from requested cross join clock left join lateral (
        select * from ${schema}.runs as run where run.shard = $1::smallint and run.id = requested.id limit 1) as run on true)
    select place, not held as lost, case when mine then control_request end as control_request,
      case when held and inbox > known then inbox end as inbox, over
    from judged where not held or over or (mine and control_request is not null) or inbox > known`,
  )
  const unknownLeases = statement(
    'beat.unknown',
    `
    with ${clock}, ${who}, ${requested}, mine as materialized (
      select run.id, run.token, run.status, run.control_request, run.timeout_at, run.deleted_at, ${isHeld} as held
      from ${schema}.runs as run
      where run.shard = $1::smallint and run.session = ${session} and run.id <> all(array(select id from requested)))
    select 'requested' as what, id, control_request, null::bigint as token from mine where control_request is not null
    union all
    select 'timed out', id, null, null from mine cross join clock
    where status = 'running' and deleted_at is null and timeout_at <= now
    union all
    (select 'unknown', id, null, token from mine where held order by id limit ${unknownLeasesAtOnce})`,
  )

  /** Moves the deadlines; returns the runs whose deadline was moved. A run that a policy refuses counts as locked. */
  async function moveAll(transactions: Transactions, id: string, moving: Claims): Promise<ReadonlySet<string>> {
    const moved = new Set<string>()
    const move = async (claims: Claims): Promise<void> => {
      const extendAll = async (x: Execution): Promise<readonly Row[]> => {
        const answers = await Promise.all(
          Array.from(claims, ([shard, some]) => x.execute(extend, [shard, heldJson(id, some)])),
        )
        return answers.flat()
      }
      try {
        // Where no locked row can be passed over, a lock may be waited for: once, and not for as long as a call may take.
        const rows = await transactions.alone(extendAll, 'beat.extend-commit', { patient: skipLocked !== '' })
        for (const row of rows) moved.add(row['id'] as string)
      } catch (error) {
        if (skipLocked !== '' || !isHoldfastError(error) || !isLocked(sqlStateOf(error.cause))) throw error
      }
    }
    if (moving.size === 0) return moved
    await move(moving).catch(async (error: unknown) => {
      if (!isOfOneRow(error)) throw error
      for (const [shard, claims] of moving) {
        await withoutRefused(
          claims,
          (some) => move(new Map([[shard, some]])),
          () => undefined,
        )
      }
    })
    return moved
  }

  async function lookAt(transactions: Transactions, id: string, claims: Claims): Promise<readonly ListedAnswer[]> {
    if (claims.size === 0) return []
    const answers = await transactions.alone((x) =>
      Promise.all(Array.from(claims, ([shard, some]) => x.execute(look, [shard, heldJson(id, some)]))),
    )
    return answers.flat().map(answerOf)
  }

  async function lookForUnknownLeases(transactions: Transactions, id: string, claims: Claims): Promise<UnlistedAnswer> {
    if (!walkPace.isDue) return skippedUnlisted
    try {
      const answers = await walkPace.walk(() =>
        transactions.alone((x) =>
          Promise.all(shards.map((shard) => x.execute(unknownLeases, [shard, heldJson(id, claims.get(shard) ?? [])]))),
        ),
      )
      return unlistedOf(answers.flat())
    } catch (error) {
      // The session is kept and all that it knows of was looked at: a later beat may find the rest.
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
      return skippedUnlisted
    }
  }

  return {
    async beat(transactions, request) {
      const { session: id, leaseMs, opens = true, held = [], end = false, seeksUnknownLeases = true } = request
      const claims = byShard(
        dialect,
        held.map((claim, place) => ({ ...claim, place })),
        ({ runId }) => runId,
      )
      const values = [0, JSON.stringify({ id, lease: Math.round(leaseMs), ends: end })]
      const keeping = async (x: Execution): Promise<Row> => {
        const asked = isSpread ? [x.execute(ask, [])] : []
        const answers = await Promise.all([...asked, x.execute(opens || end ? open : keep, values)])
        const found = answers.flat().reduce<Row>((all, row) => ({ ...all, ...row }), {})
        return found['now'] === undefined ? { ...(await x.execute(ask, []))[0], ...found } : found
      }
      const kept = await transactions.alone(keeping, 'beat.commit')
      const alive = kept['alive'] === true
      if (end) await endedSessions.forget(transactions)
      // Only a live session moves a deadline.
      const moving = alive ? movingOf(claims) : new Map<number, readonly Claim[]>()
      const moved = await moveAll(transactions, id, moving)
      const seen = await lookAt(transactions, id, claims)
      const unlisted = seeksUnknownLeases ? await lookForUnknownLeases(transactions, id, claims) : nothingUnlisted
      // Checked after the lease was extended: a process that must leave has that long to end its work. The end of a session
      // is always accepted.
      if (!end) assertClient(kept['min_client'])

      // Runs of which this store can have none are not in any shard.
      const placed = new Set([...claims.values()].flat().map(({ place }) => place))
      const unplaced = Array.from(held.keys()).filter((place) => !placed.has(place))
      const listed = [...seen, ...unplaced.map(lostAnswer)]
      const lost = lostPlaces(request, alive, listed)
      const busy = new Set(
        [...moving.values()].flat().flatMap(({ place, runId }) => (lost.has(place) || moved.has(runId) ? [] : [runId])),
      )
      const answer = answerBeat(request, alive, { listed, unlisted }, Number(kept['now']))
      return busy.size === 0 ? answer : { ...answer, busy: [...busy] }
    },
  }
}

/** The claims whose deadlines are to be moved, or that have begun, each once: the last word counts. */
function movingOf(held: Claims): Claims {
  const found = new Map<number, readonly Claim[]>()
  for (const [shard, claims] of held) {
    const asking = claims.filter(({ extendMs, begun }) => extendMs !== null || begun !== undefined)
    if (asking.length === 0) continue
    found.set(shard, [...new Map(asking.map((one) => [`${one.token} ${one.runId}`, one])).values()])
  }
  return found
}

function heldJson(session: string, claims: readonly Claim[]): string {
  const held = claims.map(({ place, runId, token, extendMs, inbox, begun }) => {
    const claim = {
      place,
      id: runId,
      token,
      extend: extendMs === null ? null : Math.round(extendMs),
      ...(begun === undefined ? {} : { begun }),
    }
    return inbox === undefined ? claim : { ...claim, inbox }
  })
  return JSON.stringify({ session, held })
}

function lostAnswer(place: number): ListedAnswer {
  return { place, isLost: true, controlRequest: null, inbox: null, isTimedOut: false }
}

function answerOf(row: Row): ListedAnswer {
  return {
    place: Number(row['place']),
    isLost: row['lost'] === true,
    controlRequest: controlRequestOf(row['control_request'] as string | null),
    inbox: row['inbox'] === null ? null : Number(row['inbox']),
    isTimedOut: row['over'] === true,
  }
}

function unlistedOf(rows: readonly Row[]): UnlistedAnswer {
  const of = (what: string): readonly Row[] => rows.filter((row) => row['what'] === what)
  const unknownLease = (row: Row): Beat['unknownLeases'][number] => ({
    runId: row['id'] as string,
    token: Number(row['token']),
  })
  return {
    unknownLeases: onceById(of('unknown').map(unknownLease), ({ runId }) => runId).slice(0, unknownLeasesAtOnce),
    controlRequests: of('requested').flatMap((row) => {
      const controlRequest = controlRequestOf(row['control_request'] as string | null)
      return controlRequest === null ? [] : [{ runId: row['id'] as string, controlRequest }]
    }),
    timedOut: of('timed out').map((row) => row['id'] as string),
  }
}
