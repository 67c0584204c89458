// The first look of a rescue: the sessions that hold runs, the live sessions, and expired times. The holders are read before
// the live sessions: a session opens before it leases, so that no new session is considered dead.
//
// Most entries of these indexes are of dead rows, and while a transaction holds an old snapshot nothing can clean them up. So
// there are two looks:
//
//   front   from the front of every index: all holders, and the first time that will expire. It steps over every entry of a
//           dead row, and rests long if that took long
//   ahead   times that have expired since the last look, and sessions that lived then and do not live now. The next later time
//           is remembered from the last look from the front, and hints report runs that expire soon
//
// As long as looks from the front are cheap there are no others. Where one takes the database too long, a look ahead takes
// its place at once, so that a worker can begin in any case. A look ahead misses rows that came in behind it: a row whose
// transaction took longer than the slack, or a run of a session that no look has seen alive. The next look from the front
// finds those.

import { isTooSlow } from '../../../core/errors/too-slow.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution, Row, DetailedHint, Transactions, Value } from '../execution.ts'
import { WalkPace } from './walk-pace.ts'
import { timeOf } from '../schema/rows.ts'
import { everyShard } from '../schema/shards.ts'

/**
 * A row that is written now has a time of now, or later, and is visible to other transactions once it is committed: so much
 * later at most.
 */
const slackMs = 5_000

/**
 * The runs that a timeout may end, by the condition of the indexes. Undo work has no bound on its time, and a run that is
 * over is not ended again.
 */
export const isBound = `run.session is null and run.status not in ('paused', 'cancelling') and run.undo <> 'due'
        and run.deleted_at is null and run.ended_at is null`

export interface RescueOutlook {
  /** When the next of anything runs out. */
  readonly next: number | null
  /** When the next suspect is due. */
  readonly suspects: number | null
  readonly now: number
  /** Those that live, and until when. */
  readonly living: ReadonlyMap<string, number>
  /** The sessions that may hold runs in each shard, and the next time in it that expires. */
  readonly shards: readonly { readonly holders: readonly string[]; readonly next: number | null }[]
}

type Turn = 'first' | 'last'

interface Looks {
  readonly front: Statement
  readonly ahead: Statement
  readonly alive: Statement
}

export interface RescueLook {
  /** The first look of a rescue has no place in the plan, which begins once there is something to do. */
  look(transactions: Transactions, turn: Turn): Promise<RescueOutlook>
  living(x: Execution): Promise<ReadonlyMap<string, number>>
  /** Nothing that has run out and is known has done so before this. */
  readonly floor: number
  /** Everything that these held has been taken. */
  swept(dead: Iterable<string>): void
  /** The time of a run may be over before the next time of the last look. */
  notice(hints: readonly DetailedHint[]): void
}

interface Memory {
  /** Before this nothing is left that has run out. */
  readonly since: number
  /** The next time that expires, as the last look from the front saw it. */
  readonly next: number | null
  readonly living: ReadonlyMap<string, number>
}

/** Before all times. */
const never = -1

export function createRescueLook(dialect: Dialect, monotonic: () => number): RescueLook {
  const shards = everyShard(dialect)
  const looks = { first: looksOf(dialect, []), last: looksOf(dialect, ['rescue.next']) }
  const time = statement([], `select ${dialect.now} as now, $1::smallint as shard`)
  const walkPace = new WalkPace(monotonic)
  /** Sessions that lived once and do not live any more, and that may have left runs. */
  const unswept = new Set<string>()
  let memory: Memory | null = null
  /** The earliest time of all hints since the last look began. */
  let hintedAt = Number.POSITIVE_INFINITY

  const floorOf = (): number => (memory === null ? never : Math.min(memory.since, hintedAt))

  async function living(x: Execution): Promise<ReadonlyMap<string, number>> {
    return livingOf(await x.execute(looks.first.alive, [0]))
  }

  async function ask(x: Execution, turn: Turn, since: number | null): Promise<RescueOutlook> {
    const { front, ahead, alive } = looks[turn]
    const held = since === null ? front : ahead
    const values = (shard: number): readonly Value[] => (since === null ? [shard] : [shard, since])
    const [found, sessions] = await Promise.all([
      Promise.all(shards.map((shard) => x.execute(held, values(shard)))),
      x.execute(alive, [0]),
    ])
    const alives = livingOf(sessions)
    const rows = found.map(([row]) => ({
      holders: JSON.parse((row?.['holders'] as string | null | undefined) ?? '[]') as string[],
      next: earliest([row?.['deadline'], row?.['timeout'], row?.['expiry']].map(timeOf)),
      suspects: timeOf(row?.['suspects']),
      now: Number(row?.['now']),
    }))
    return {
      next: earliest(rows.map((row) => row.next)),
      suspects: earliest(rows.map((row) => row.suspects)),
      // The earliest of them: a time that was not over by then is not yet.
      now: earliest(rows.map((row) => row.now)) ?? 0,
      living: alives,
      shards: rows,
    }
  }

  /** Remembers a look, and adds the remembered times to its result. */
  function remember(seen: RescueOutlook, isFront: boolean): RescueOutlook {
    const { now, next, living: alives } = seen
    for (const id of memory?.living.keys() ?? []) if (!alives.has(id)) unswept.add(id)
    for (const id of unswept) if (alives.has(id)) unswept.delete(id)
    const known = memory?.next ?? null
    const later = isFront ? next : known !== null && known > now ? known : null
    // Expired rows that stay, because another transaction has locked them, are looked at again.
    const since = Math.min(now - slackMs, next ?? now)
    memory = { since, next: later === null || later > now ? later : null, living: alives }
    return {
      ...seen,
      next: earliest([...alives.values(), next, later, hintedAt === Number.POSITIVE_INFINITY ? null : hintedAt]),
      shards: seen.shards.map((one) => ({ ...one, holders: [...new Set([...one.holders, ...unswept])] })),
    }
  }

  async function lookAhead(transactions: Transactions, turn: Turn, known: number): Promise<RescueOutlook> {
    const startFrom = async (x: Execution): Promise<number> =>
      Number((await x.execute(time, [0]))[0]?.['now']) - slackMs
    // Where nothing is known, it begins with what runs out now.
    const since = memory === null ? await transactions.alone(startFrom) : known
    return walkPace.beside(() => transactions.alone((x) => ask(x, turn, since)))
  }

  return {
    async look(transactions, turn) {
      const since = floorOf()
      const isFront = walkPace.isDue
      hintedAt = Number.POSITIVE_INFINITY
      try {
        if (!isFront) return remember(await lookAhead(transactions, turn, since), false)
        const walk = walkPace.walk(() => transactions.alone((x) => ask(x, turn, null)))
        const seen = await walk.catch((error: unknown) => {
          if (!isTooSlow(error)) throw error
          return null
        })
        return remember(seen ?? (await lookAhead(transactions, turn, since)), seen !== null)
      } catch (error) {
        hintedAt = Math.min(hintedAt, since)
        throw error
      }
    },
    living,
    get floor() {
      return floorOf()
    },
    swept(dead) {
      for (const id of dead) unswept.delete(id)
    },
    notice(hints) {
      for (const hint of hints) if (hint.kind === 'deadline') hintedAt = Math.min(hintedAt, hint.at)
    },
  }
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : known.reduce((least, time) => Math.min(least, time))
}

function livingOf(rows: readonly Row[]): ReadonlyMap<string, number> {
  return new Map(rows.map((row) => [row['id'] as string, Number(row['alive_until'])]))
}

function looksOf({ schema, now }: Dialect, plan: Statement['plan']): Looks {
  const clock = `clock as materialized (select ${now} as now)`
  const first = (column: string, condition: string): string =>
    `(select run.${column} from ${schema}.runs as run
        where run.shard = $1::smallint and run.${column} is not null and ${condition}
        order by run.${column} limit 1)`
  const firstOf = (column: string, condition: string): string =>
    first(column, `run.${column} >= $2::bigint and run.${column} <= (select now from clock) and ${condition}`)
  const suspects = `(select min(run.due) from ${schema}.runs as run
        where run.shard = $1::smallint and run.readiness = 'isolated')`
  return {
    // Each holder is one step along the index, however much it holds.
    front: statement(
      plan,
      `
    with recursive ${clock}, holder as (
      (select run.session from ${schema}.runs as run
      where run.shard = $1::smallint and run.session is not null order by run.session limit 1)
      union all
      select (select run.session from ${schema}.runs as run
        where run.shard = $1::smallint and run.session > holder.session order by run.session limit 1)
      from holder where holder.session is not null)
    select (select pg_catalog.json_agg(session)::text from holder where session is not null) as holders,
      ${first('deadline', 'true')} as deadline,
      ${first('timeout_at', isBound)} as timeout,
      ${first('expires_at', isBound)} as expiry,
      ${suspects} as suspects,
      now
    from clock`,
    ),
    ahead: statement(
      plan,
      `
    with ${clock}
    select null::text as holders,
      ${firstOf('deadline', 'true')} as deadline,
      ${firstOf('timeout_at', isBound)} as timeout,
      ${firstOf('expires_at', isBound)} as expiry,
      ${suspects} as suspects,
      now
    from clock`,
    ),
    alive: statement(
      plan,
      `select id, alive_until from ${schema}.sessions where shard = $1::smallint and ended_at is null`,
    ),
  }
}
