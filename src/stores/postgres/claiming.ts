// Handing out what is due, in one statement: the first of each type are picked without locks, merged and cut, then locked and
// judged anew, then leased. Runs whose time has come are first moved to the ready ones, by whoever finds that there are some.
//
// Under a long backlog the first rows of the index may be dead ones that nothing can clean up while somebody reads an old
// snapshot. So a claim that came back full remembers how far it got, and the next ones begin there; now and then, and when
// something is known to have come in before that, one begins at the front again.

import type { Run } from '../../core/run.ts'
import type { Claimed, ClaimRequest, ClaimSelector, Fresh } from '../../store.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution, Row, Told } from './execution.ts'
import { entryOf, runColumns, runOf } from './rows.ts'

/** At most so many come due at once, so that a long standstill does not become a long transaction. */
const promotedAtOnce = 1_000

/** For how long claims may begin where the last one ended. */
const floorMs = 2_000

export interface Claiming {
  /** Leases runs of one shard; `limit` of them at most. */
  claim(x: Execution, shard: number, request: ClaimRequest): Promise<Claimed>
  /** Something may have come in before where the last claim ended. */
  notice(hints: readonly Told[]): void
}

/** Before this, as far as is known, nothing is ready. */
interface Floor {
  readonly rank: number
  readonly due: number
  readonly until: number
}

interface Found extends Required<Claimed> {
  /** Some have come due and are not among the ready ones yet: nothing was leased, because they may go first. */
  readonly isDue: boolean
}

export function claiming({ schema, now, skipLocked }: Dialect, monotonic: () => number): Claiming {
  const floors = new Map<string, Floor>()

  // Judged anew after a wait, whatever was picked. Without SKIP LOCKED a claim waits for another one, and finds less.
  const isInTime = `(run.timeout_at is null or run.timeout_at > now)
        and (run.expires_at is null or run.expires_at > now)`
  // A row that is looked up by its id must not be looked for in an index of what is ready, which could also answer that.
  const isStill = (readiness: string): string => `coalesce(run.readiness, '') = '${readiness}'`
  const leasing = `
    with clock as materialized (select ${now} as now),
    wanted as materialized (
      select * from json_to_recordset($2::text::json) as wanted (
        type text, version integer, lease_ms bigint, rank integer, due bigint)),
    coming as materialized (
      select min((
        select run.due from ${schema}.runs as run
        where run.shard = $1::smallint and run.type = wanted.type and run.version = wanted.version
          and run.readiness = 'timed' order by run.due limit 1)) as due from wanted),
    allowed as materialized (
      select case when coming.due <= clock.now and not $5::boolean then 0 when exists (
          select 1 from ${schema}.sessions where shard = 0 and id = $3::text and ended_at is not null) then 0
        else $4::integer end as most
      from clock cross join coming),
    picked as materialized (
      select one.* from wanted cross join clock cross join lateral (
        select run.id, run.rank, run.due, wanted.lease_ms from ${schema}.runs as run
        where run.shard = $1::smallint and run.type = wanted.type and run.version = wanted.version
          and run.readiness = 'ready' and ${isInTime}
          and (run.rank, run.due) >= (coalesce(wanted.rank, -2147483648), coalesce(wanted.due, -1))
        order by run.rank, run.due, run.id
        -- One more than is allowed, to know whether some are left.
        limit $4::integer + 1) as one
      order by rank, due, id limit (select most + 1 from allowed)),
    chosen as materialized (select * from picked order by rank, due, id limit (select most from allowed)),
    locked as materialized (
      select run.id, chosen.lease_ms, chosen.rank as place, chosen.due as picked_due, now
      from (select * from chosen order by id) as chosen cross join clock cross join lateral (
        select run.id from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = chosen.id and ${isStill('ready')} and ${isInTime}
        for no key update ${skipLocked}) as run),
    leased as (
      update ${schema}.runs as run set
        status = case run.status when 'cancelling' then run.status else 'running' end, readiness = 'leased', due = null,
        session = $3::text, token = run.token + 1, crashes = run.crashes + 1, deadline = locked.now + lease_ms,
        expires_at = null
      from locked
      where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id
      returning ${runColumns('run')}, locked.place, locked.picked_due)
    select clock.now, (select count(*) from picked) as found, (select most from allowed) as most,
      (select due from coming) as next_due, leased.*, entry.kind, entry.name, entry.meta, entry.data, entry.at,
      entry.transition_id
    from clock left join leased on true left join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = leased.id and entry.seq = 1
        and leased.seq = 1 and leased.inbox = 0
      limit 1) as entry on true
    order by leased.place, leased.picked_due, leased.id`
  const lease = statement(['claim.session', 'claim.pick', 'claim.lease', 'claim.next', 'claim.commit'], leasing)
  const leaseAgain = statement(['claim.pick', 'claim.lease', 'claim.next', 'claim.commit'], leasing)
  const promote = statement(
    'claim.promote',
    `
    with clock as materialized (select ${now} as now),
    due as materialized (
      select one.id from json_to_recordset($2::text::json) as wanted (type text, version integer)
        cross join clock cross join lateral (
          select run.id from ${schema}.runs as run
          where run.shard = $1::smallint and run.type = wanted.type and run.version = wanted.version
            and run.readiness = 'timed' and run.due <= now
          order by run.due, run.id limit ${promotedAtOnce}) as one),
    locked as materialized (
      select run.id from (select id from due order by id) as due cross join lateral (
        select run.id from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = due.id and ${isStill('timed')}
        for no key update ${skipLocked}) as run)
    update ${schema}.runs as run set readiness = 'ready' from locked
    where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id`,
  )

  /** `again`: what has come due was moved already; what still has not is in the hands of somebody else. */
  async function find(x: Execution, shard: number, request: ClaimRequest, again: boolean): Promise<Found> {
    const { session, selectors, limit } = request
    const wanted = distinct(selectors).map((one) => ({ ...one, ...floorOf(shard, one) }))
    const values = [shard, JSON.stringify(wanted), session, limit, String(again)]
    const rows = await x.execute(again ? leaseAgain : lease, values)
    const { now: time, found, most, next_due } = rows[0] as Row
    const nextDue = next_due === null ? null : Number(next_due)
    const runs: Run[] = []
    const fresh: Fresh[] = []
    for (const row of rows) {
      if (row['id'] === null) continue
      const run = runOf(row)
      runs.push(run)
      // Its only entry, and so the seq of the run is that of the entry.
      if (row['kind'] !== null) fresh.push({ runId: run.id, entry: entryOf(row) })
    }
    // Others were quicker with some of them: there may be more behind those.
    const more = Number(found) > Number(most) || runs.length < Math.min(Number(found), Number(most))
    if (most !== 0) raise(shard, wanted, rows, more)
    return { runs, fresh, more, nextDue, now: Number(time), isDue: nextDue !== null && nextDue <= Number(time) }
  }

  function floorOf(shard: number, selector: ClaimSelector): { readonly rank?: number; readonly due?: number } {
    const floor = floors.get(placeOf(shard, selector))
    return floor === undefined || floor.until < monotonic() ? {} : { rank: floor.rank, due: floor.due }
  }

  /** Remembers how far a claim of one type got, if it left some behind. With several types nobody knows where each stands. */
  function raise(
    shard: number,
    wanted: readonly (ClaimSelector & { rank?: number })[],
    rows: readonly Row[],
    more: boolean,
  ): void {
    const last = rows.at(-1)
    const [only] = wanted
    if (only === undefined || wanted.length > 1) return
    const place = placeOf(shard, only)
    if (!more || last === undefined || last['id'] === null) {
      floors.delete(place)
      return
    }
    const until = only.rank === undefined ? monotonic() + floorMs : floors.get(place)?.until
    if (until !== undefined) floors.set(place, { rank: Number(last['place']), due: Number(last['picked_due']), until })
  }

  return {
    async claim(x, shard, request) {
      let found = await find(x, shard, request, false)
      if (found.isDue) {
        await x.execute(promote, [shard, JSON.stringify(distinct(request.selectors))])
        for (const { type } of request.selectors) forget(type)
        found = await find(x, shard, request, true)
      }
      const { runs, fresh, more, nextDue, now: time } = found
      const claimed = { runs, more, nextDue, now: time }
      return fresh.length === 0 ? claimed : { ...claimed, fresh }
    },
    notice(hints) {
      if (floors.size === 0) return
      for (const hint of hints) if (hint.kind === 'ready') forget(hint.type, hint.rank)
    },
  }

  /** What was inserted just now with this rank, or came in with any, may stand before where claims of this type begin. */
  function forget(type: string, rank = Number.NEGATIVE_INFINITY): void {
    for (const [place, floor] of floors) {
      if (rank < floor.rank && (type === '' || place.endsWith(` ${type}`))) floors.delete(place)
    }
  }
}

/** One for each type and version: the first that names it. */
function distinct(
  selectors: readonly ClaimSelector[],
): readonly (ClaimSelector & { readonly lease_ms: number | null })[] {
  const byName = new Map(selectors.toReversed().map((one) => [`${one.version} ${one.type}`, one]))
  return Array.from(byName.values(), ({ type, version, leaseMs }) => ({ type, version, lease_ms: leaseMs ?? null }))
}

function placeOf(shard: number, { type, version }: Pick<Run, 'type' | 'version'>): string {
  return `${shard} ${version} ${type}`
}
