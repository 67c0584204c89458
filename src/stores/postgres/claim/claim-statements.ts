// The statements of a claim. A claim is one statement: it picks without locks several times as many runs as it wants, locks
// them in claim order while it skips those that another transaction has locked, stops when it has enough, and leases them.
// The limit comes after the lock: a limit before it let one foreign lock on the first run stop every claim of one run.
//
// A row that was picked is locked and leased by its place in the table (ctid), which costs a page instead of a walk down the
// primary key for each, also for the rows that other claims have locked. A run whose row was written anew since it was picked
// has another place: this claim does not lease it, and counts it as one that it had to skip, so the next one finds it.
//
// Several types take turns: a loop over the types and versions reads the first runs of each along the index, and the rows of
// all of them are numbered by rounds. A query for each of them, put together by UNION ALL, took two to five times as long with a
// hundred types: what a plan of so many parts costs is to begin it. A claim of one type has one order, that of the index, and
// counts no rounds.
//
// Of many types few runs each are read. A type of which all that were read are taken may have more, and these would have their
// turn before runs of later rounds: so nothing behind its last one is leased, and the claim is short (claim.ts looks again). A
// claim that has found nothing but locked runs, as far as it looks, leases what it can get, in turn or not: otherwise one
// transaction that has locked the runs of an urgent type would stop the claims of all others.

import { mostFreshBytes } from '../../../core/rules/claims/claim.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import { leasedColumns, runColumns } from '../schema/rows.ts'
import { namedClaim } from './named-claim.ts'
import { aheadMs, type TimedLook } from './timed-floors.ts'

/** The most bytes of an entry that comes along with a claim: a larger one goes through a load, which is bounded. */
const mostEach = 16 * 1024

/** At most this many come due at once, so that a long standstill does not become a long transaction. */
export const promotedAtOnce = 1_000

/** The request of a claim, by type and version. */
export interface SelectorRow {
  /** Its place in the list. */
  readonly of: number
  readonly type: string
  readonly version: number
  /** Where its type stands among those that take turns: one place for all versions of a type. */
  readonly type_at: number
  readonly lease_ms: number | null
  /** Where it begins: nothing before that is ready, as far as is known. */
  readonly rank: number
  readonly due: number
}

export interface ClaimStatements {
  /** The statement for these types, with the values that it takes. Without `again` it leases nothing if some have come due. */
  lease(request: LeaseValues): { readonly statement: Statement; readonly values: readonly (string | number | null)[] }
  /**
   * Makes timed runs ready that have come due; returns the first of each type. Takes the shard, the types, since when and the
   * choice, if any.
   */
  promote(isChoosing: boolean): Statement
  /** When the next one comes due that is not due yet, in the next `aheadMs`. Takes the shard and the types. */
  readonly next: Statement
  /** The claim of suspects. Takes the shard, the session, the limit, the window, the types and the choice, if any. */
  isolated(isChoosing: boolean): Statement
  /** The claim of one run. Takes the shard, the session, the run, the limit, the types, and the keys or null. */
  readonly named: Statement
  /** The runs that a claim may pick; leases nothing. Takes the shard, the types, how many of each, and the choice. */
  readonly candidates: Readonly<Record<'ready' | 'timed' | 'isolated', Statement>>
  /**
   * Changes runs as a claim does, so that it is seen whether that may be: it is rolled back. Takes the shard, the session,
   * the ids.
   */
  readonly probe: Statement
}

/** Conditions on runs besides their type. They go as JSON, and only if there are any. */
export interface Choice {
  /** The keys that the claimer has; left out if it may get runs of any. */
  readonly keys?: readonly string[]
  /** Runs that are left out. */
  readonly without?: readonly string[]
}

export interface LeaseValues {
  readonly shard: number
  readonly session: string
  readonly limit: number
  /** How many of each type and version are picked. */
  readonly window: number
  /** It begins behind so many runs of a type, or rounds of several types, if there are enough of the same rank. */
  readonly offset: number
  readonly again: boolean
  /** Of several types only what is known to be next in turn is leased. */
  readonly isInTurn: boolean
  readonly selectors: readonly SelectorRow[]
  /** Undefined if all runs of these types are meant. */
  readonly choice: Choice | undefined
  readonly timed: TimedLook
}

/** What makes `picked`, what has all that were looked at, and where the first of each type stands. */
interface Picking {
  readonly pick: string
  readonly all: string
  readonly heads: string
  readonly isOfOneType: boolean
}

export function claimStatements(dialect: Dialect): ClaimStatements {
  const { schema, now, skipLocked, isSpread } = dialect
  const clock = '(select now from clock)'
  // Judged anew after a wait for a lock (EvalPlanQual).
  const isInTime = `(run.timeout_at is null or run.timeout_at > ${clock})
        and (run.expires_at is null or run.expires_at > ${clock})`
  // A row that is looked up by its id must not be searched in an index of ready runs, which could also answer that.
  const isStill = (readiness: string): string => `coalesce(run.readiness, '') = '${readiness}'`
  const hasEnded = `exists (select 1 from ${schema}.sessions where shard = 0 and id = $2::text and ended_at is not null)`
  /** `at` is the time, as a statement reads it or gets it. */
  const selectorsAt = (at: string): string => `
    with clock as materialized (select ${at} as now),
    selector as materialized (
      select * from json_to_recordset($5::text::json) as selector (
        "of" integer, type text, version integer, type_at integer, lease_ms bigint, rank integer, due bigint))`

  // A place in the table says which row it is only together with the machine, and in a table of several partitions only together
  // with the id. Written so, the id is no reason to search the primary key instead.
  const ofShard = isSpread ? 'run.shard = $1::smallint and ' : ''
  const isSame = (row: string): string => `coalesce(run.id = ${row}.id, false)`
  /** Locks the picked rows, in the order of the claim, with SKIP LOCKED: it waits for no other transaction. */
  const lockInTurn = (conditions: string): string => `
    locked as materialized (
      select picked.* from (select * from picked order by nth) as picked cross join lateral (
        select run.id from ${schema}.runs as run
        where ${ofShard}run.ctid = picked.place_in_table and ${isSame('picked')} and ${conditions}
        for no key update skip locked) as run
      limit (select most from allowed))`
  /** Without SKIP LOCKED a claim waits for others, and so takes its rows in the order of their ids, as they do. */
  const lockAndWait = (conditions: string): string => `
    locked as materialized (
      select chosen.* from (
        select * from (select * from picked order by nth limit (select most from allowed)) as first order by id
      ) as chosen cross join lateral (
        select run.id from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = chosen.id and ${conditions}
        for no key update) as run)`
  const [lock, place, isLocked] =
    skipLocked === ''
      ? [
          lockAndWait,
          '',
          'run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id',
        ]
      : [
          lockInTurn,
          'run.ctid as place_in_table,',
          `${ofShard}run.ctid = any(array(select place_in_table from locked)) and run.ctid = locked.place_in_table
        and ${isSame('locked')}`,
        ]
  const leased = (crashes: string, returned: string, isOfOneType: boolean): string => `
    leased as (
      update ${schema}.runs as run set
        status = case when run.status = 'cancelling' then run.status else 'running' end, readiness = 'leased', due = null,
        session = $2::text, token = run.token + 1, crashes = ${crashes},
        deadline = ${clock} + ${isOfOneType ? '(select lease_ms from selector)' : 'selector.lease_ms'}, expires_at = null
      from locked ${isOfOneType ? '' : 'inner join selector on selector."of" = locked."of"'}
      where ${isLocked}
      returning ${returned}, locked.nth, locked.due as picked_due)`
  // Where nothing is leased, one row shows whether there are any.
  const picking = 'limit (select case when most = 0 then 1 else $4::integer end from allowed)'

  /** A part of the choice, which is that parameter. Each part is a query of its own, so that it is read once and not for every row. */
  const partOf = (choice: number, name: keyof Choice): string => `($${choice}::text::json -> '${name}'::text)`
  const isSilent = (choice: number, name: keyof Choice): string => `(select ${partOf(choice, name)} is null)`
  /** No run that is left out; null if there is no choice: then nothing is asked. */
  const isMeant = (choice: number | null): string => {
    if (choice === null) return ''
    const ids = `array(select value::uuid from json_array_elements_text(${partOf(choice, 'without')}) as one (value))`
    return `and (${isSilent(choice, 'without')} or run.id <> all(${ids}))`
  }
  /** Also only those of keys that the claimer has. */
  const isMine = (choice: number | null): string => {
    if (choice === null) return ''
    const keys = `array(select value from json_array_elements_text(${partOf(choice, 'keys')}) as key (value))`
    return `and (run.key_id is null or ${isSilent(choice, 'keys')} or run.key_id = any(${keys})) ${isMeant(choice)}`
  }

  /**
   * The first runs of one type and version, in claim order; within a rank those behind the offset come before those in front of
   * it. The first eight parameters are shard, session, limit, window, the types, whether it is asked again, since when and how
   * far ahead timed runs are looked at; for several types, the next are whether they are leased in turn only, and the offset.
   */
  const pickOne = (keys: number | null): string => `
    picked as materialized (
      select *, row_number() over (order by rank, stands <= $13::integer, stands) as nth from (
        select *, row_number() over (order by rank, due, id) as stands from (
          select run.id, ${place} run.rank, run.due, 0 as "of" from ${schema}.runs as run
          where run.shard = $1::smallint and run.type = $9::text and run.version = $10::integer
            and run.readiness = 'ready' and ${isInTime} ${isMine(keys)}
            and (run.rank, run.due) >= ($11::integer, $12::bigint)
          order by run.rank, run.due, run.id ${picking}) as ready) as standing)`
  /** Those of several, which take turns, as far as it is known whose turn it is. */
  const pickInTurns = (keys: number | null): string => `
    read as materialized (
      select *, row_number() over (partition by rank, type_at order by due, id) as round,
        row_number() over (partition by "of" order by rank, due, id) as nth_of_type
      from (
        select one.* from selector cross join lateral (
          select run.id, ${place} run.rank, run.due, selector."of", selector.type_at from ${schema}.runs as run
          where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
            and run.readiness = 'ready' and ${isInTime} ${isMine(keys)} and (run.rank, run.due) >= (selector.rank, selector.due)
          order by run.rank, run.due, run.id ${picking}) as one) as ready),
    horizon as materialized (
      select rank, round from read where nth_of_type = $4::integer and $9::boolean order by rank, round limit 1),
    picked as materialized (
      select *, row_number() over (order by rank, round <= $10::integer, round, type_at) as nth from read
      where not exists (select 1 from horizon) or (rank, round) <= (select rank, round from horizon))`
  /** Where the first of each type stands, and how many of it were read: a claim of one type knows that. */
  const headsOf = `(
        select pg_catalog.json_agg(
          pg_catalog.json_build_object('of', "of", 'rank', rank, 'due', due, 'picked', of_type))::text
        from (select *, count(*) over (partition by "of") as of_type from read) as head where nth_of_type = 1)`

  /** The first of each type that was picked and not leased, and how many of it had to be skipped. */
  const left = `(
        select pg_catalog.json_agg(
          pg_catalog.json_build_object('of', "of", 'rank', rank, 'due', due, 'skipped', skipped))::text
        from (
          select distinct on ("of") "of", rank, due,
            count(*) filter (where nth <= looked.at) over (partition by "of") as skipped
          from picked cross join looked where id not in (select id from leased) order by "of", rank, due) as first)`

  // Citus takes half as long to plan a statement that reads no clock: there the time is the last value.
  const last = (values: number): string => (isSpread ? `$${values + 1}::bigint` : now)
  // What the claim has found out stands in the row of the first run and in no other; without runs, in the only row. The rows are in
  // no order: to sort them here is to copy each once more.
  const onFirst = ([name, value]: readonly [string, string]): string =>
    `case when leased.nth is not distinct from looked.first then ${value} end as ${name}`
  const leasing = (
    { pick, all, heads, isOfOneType }: Picking,
    keys: number | null,
    values: number,
  ): string => `${selectorsAt(last(values))},
    coming as materialized (
      select min((
        select run.due from ${schema}.runs as run
        where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
          and run.readiness = 'timed' and run.due >= $7::bigint ${isMeant(keys)}
          and run.due <= coalesce(${clock} + $8::bigint, 9223372036854775807)
        order by run.due limit 1)) as due from selector),
    allowed as materialized (
      select case when coming.due <= clock.now and not $6::boolean then 0 when ${hasEnded} then 0
        else $3::integer end as most
      from clock cross join coming),
    ${pick},
    ${lock(`${isStill('ready')} and ${isInTime} ${isMine(keys)}`)},
    ${leased('run.crashes + 1', leasedColumns('run', isOfOneType), isOfOneType)},
    -- How many of those that were picked were looked at, and how many of them could be leased.
    looked as materialized (
      select (select count(*) from leased) as got, (select min(nth) from leased) as first,
        case when count(*) < (select most from allowed) then (select count(*) from picked) else max(nth) end as at
      from locked)
    select ${Object.entries({
      now: 'clock.now',
      found: `(select count(*) from ${all})`,
      most: '(select most from allowed)',
      next_due: '(select due from coming)',
      skipped: 'looked.at - looked.got',
      not_leased: left,
      heads,
    })
      .map(onFirst)
      .join(', ')},
      leased.*, entry.kind, entry.name, entry.meta, entry.data, entry.at, entry.transition_id
    from clock cross join looked left join leased on true left join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = leased.id and entry.seq = 1
        and leased.seq = 1 and leased.inbox is null
        and coalesce(octet_length(entry.data), 0) <= least(${mostEach}, ${mostFreshBytes} / greatest($3::integer, 1))
      limit 1) as entry on true`

  const leaseOf = (text: string): { readonly first: Statement; readonly again: Statement } => ({
    first: statement(['claim.session', 'claim.pick', 'claim.lease', 'claim.next', 'claim.commit'], text),
    again: statement(['claim.pick', 'claim.lease', 'claim.next', 'claim.commit'], text),
  })
  const ofOne = (keys: number | null): string =>
    leasing({ pick: pickOne(keys), all: 'picked', heads: 'null::text', isOfOneType: true }, keys, keys ?? 13)
  const ofSeveral = (keys: number | null): string =>
    leasing({ pick: pickInTurns(keys), all: 'read', heads: headsOf, isOfOneType: false }, keys, keys ?? 10)
  const leases = {
    one: { all: leaseOf(ofOne(null)), chosen: leaseOf(ofOne(14)) },
    several: { all: leaseOf(ofSeveral(null)), chosen: leaseOf(ofSeveral(11)) },
  }

  // Suspects are due by their own time: nothing promotes them, and their crashes are counted when they begin.
  const isolatedOf = (keys: number | null): Statement =>
    statement(
      ['claim.session', 'claim.pick', 'claim.lease', 'claim.next', 'claim.commit'],
      `${selectorsAt(now)},
    allowed as materialized (
      select case when ${hasEnded} then 0 else $3::integer end as most),
    picked as materialized (
      select one.*, row_number() over (order by one.due, one.id) as nth from selector cross join lateral (
        select run.id, ${place} run.rank, run.due, selector."of" from ${schema}.runs as run
        where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
          and run.readiness = 'isolated' and run.due <= ${clock} and ${isInTime} ${isMine(keys)}
        order by run.due, run.id limit $4::integer) as one
      order by due, id ${picking}),
    ${lock(`${isStill('isolated')} and run.due <= ${clock} and ${isInTime} ${isMine(keys)}`)},
    ${leased('run.crashes', runColumns('run'), false)}
    select clock.now, (select count(*) from picked) as found, (select most from allowed) as most,
      (select min((
        select run.due from ${schema}.runs as run
        where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
          and run.readiness = 'isolated' and run.due > clock.now order by run.due limit 1)) from selector) as next_due, leased.*
    from clock left join leased on true
    order by leased.nth`,
    )
  const isolated = isolatedOf(null)
  const chosenIsolated = isolatedOf(6)

  /** `conditions` are those of what changes them, so that it is looked at what would be. */
  const candidatesOf = (readiness: keyof ClaimStatements['candidates'], order: string, conditions: string): Statement =>
    statement(
      [],
      `
    with clock as materialized (select ${now} as now)
    select one.id, ${clock} as now from json_to_recordset($2::text::json) as selector (type text, version integer)
      cross join lateral (
        select run.id, run.rank, run.due from ${schema}.runs as run
        where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
          and run.readiness = '${readiness}' and ${conditions}
        order by ${order} limit $3::integer) as one
    order by ${order}`,
    )

  const promoteOf = (choice: number | null): Statement =>
    statement(
      'claim.promote',
      `
    with clock as materialized (select ${now} as now),
    due as materialized (
      select one.id from json_to_recordset($2::text::json) as selector (type text, version integer)
        cross join clock cross join lateral (
          select run.id from ${schema}.runs as run
          where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
            and run.readiness = 'timed' and run.due <= now and run.due >= $3::bigint ${isMeant(choice)}
          order by run.due, run.id limit ${promotedAtOnce}) as one),
    locked as materialized (
      select run.id from (select id from due order by id) as due cross join lateral (
        select run.id from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = due.id and ${isStill('timed')}
        for no key update ${skipLocked}) as run),
    promoted as (
      update ${schema}.runs as run set readiness = 'ready' from locked
      where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id
      returning run.type, run.version, run.rank, run.due)
    select distinct on (type, version) type, version, rank, due from promoted order by type, version, rank, due`,
    )
  const promote = promoteOf(null)
  const chosenPromote = promoteOf(4)

  return {
    lease({ shard, session, limit, window, offset, again, isInTurn, selectors: types, choice, timed }) {
      const { first, again: second } =
        leases[types.length === 1 ? 'one' : 'several'][choice === undefined ? 'all' : 'chosen']
      const shared = [shard, session, limit, window, JSON.stringify(types), String(again), timed.since, timed.aheadMs]
      const values: (string | number | null)[] = shared
      const [only, ...others] = types
      if (only !== undefined && others.length === 0) values.push(only.type, only.version, only.rank, only.due, offset)
      else values.push(String(isInTurn), offset)
      if (choice !== undefined) values.push(JSON.stringify(choice))
      return { statement: again ? second : first, values }
    },

    next: statement(
      [],
      `
    with clock as materialized (select ${now} as now)
    select min((
      select run.due from ${schema}.runs as run
      where run.shard = $1::smallint and run.type = selector.type and run.version = selector.version
        and run.readiness = 'timed' and run.due > ${clock} and run.due <= ${clock} + ${aheadMs}
      order by run.due limit 1)) as due
    from json_to_recordset($2::text::json) as selector (type text, version integer)`,
    ),
    promote: (isChoosing) => (isChoosing ? chosenPromote : promote),
    isolated: (isChoosing) => (isChoosing ? chosenIsolated : isolated),
    named: namedClaim(dialect, { isInTime, hasEnded }),
    candidates: {
      ready: candidatesOf('ready', 'rank, due, id', `${isInTime} ${isMine(4)}`),
      timed: candidatesOf('timed', 'due, id', `run.due <= ${clock} ${isMeant(4)}`),
      isolated: candidatesOf('isolated', 'due, id', `run.due <= ${clock} and ${isInTime} ${isMine(4)}`),
    },
    probe: statement(
      [],
      `
    with locked as materialized (
      select run.id from ${schema}.runs as run where run.shard = $1::smallint and run.id = any(
        array(select value::uuid from json_array_elements_text($3::text::json) as one (value)))
      for no key update ${skipLocked})
    update ${schema}.runs as run set
      status = case when run.status = 'cancelling' then run.status else 'running' end, readiness = 'leased', due = null,
      session = $2::text, token = run.token + 1, expires_at = null
    from locked where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id`,
    ),
  }
}
