// The feed. Flushes draw numbers and commit in any order, so a number may become visible after a higher one. One sequencer at
// a time gives positions to committed rows, and readers read only those: so no reader ever skips a row. A reader that finds the
// row of the sequencer locked does not wait: it reads what had positions when it looked, and its next call reads the rest. The
// lock may be that of a foreign transaction, and last for any time. Only a database of several machines, which has no SKIP
// LOCKED, waits.
//
// On several machines the positions that one sequencer gave become visible one machine after the other. Positions are dense, so a
// reader sees that some are missing, and goes no further. And a sequencer that finds a row which has got its position since it
// looked begins again: it would give a second one.
//
// Rows of one run are in one shard, and their numbers were drawn while the run was locked: in the order of the numbers, no
// run goes backwards. With several shards each is read by itself, one after the other, and another sequencer may give
// positions in between: nothing is read beyond the last position that was given before the first of them was asked.

import type { Change, FeedEnd } from '../../../store.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution, Row, Transactions } from '../execution.ts'
import { FeedFloor, type FeedWalkResult } from './feed-floor.ts'
import { entryColumnsOf, entryOf } from '../schema/rows.ts'
import { notVisibleYet } from '../connection/sql-state.ts'
import { askShards, byShard, everyShard } from '../schema/shards.ts'

/** At most this many rows of a shard get their positions in one transaction; the rest get them with the next call. */
const stampedAtOnce = 5_000

export interface FeedQueries {
  readChanges(transactions: Transactions, after: number, limit: number): Promise<readonly Change[]>
  /** Gives no positions: it says how far they were given, and whether that is all. */
  readEnd(x: Execution): Promise<FeedEnd>
}

interface Peeked {
  /** A row has no position yet. */
  readonly behind: boolean
  /** How far positions were given. */
  readonly last: number
}

/** Entries `first` to `last` of a run; the position is that of the first. */
interface Range {
  readonly runId: string
  readonly first: number
  readonly last: number
  readonly position: number
}

export function createFeedQueries(dialect: Dialect, monotonic: () => number): FeedQueries {
  const { schema, skipLocked, isSpread } = dialect
  const shards = everyShard(dialect)
  const floors = shards.map(() => new FeedFloor(monotonic))
  // A database of several machines has no snapshot that all of them know: there nothing is over for good.
  const snapshot = (end: 'xmin' | 'xmax'): string =>
    skipLocked === ''
      ? `${end === 'xmin' ? 0 : 1}::text`
      : `pg_catalog.pg_snapshot_${end}(pg_catalog.pg_current_snapshot())::text`
  const seen = `coalesce((select max(number) from ${schema}.feed where shard = $1::smallint), 0) as highest,
      ${snapshot('xmin')} as xmin, ${snapshot('xmax')} as xmax`
  const isBehind = `exists (
      select 1 from ${schema}.feed
      where shard = $1::smallint and position is null and number > $2::bigint) as behind, ${seen}`
  const lastGiven = `(select last from ${schema}.sequencer where shard = $1::smallint) as last`
  const peek = statement('changes.peek', `select ${isBehind}`)
  const peekLast = statement('changes.peek', `select ${isBehind}, ${lastGiven}`)
  const end = statement('feedEnd.read', `select ${isBehind}, ${lastGiven}`)
  const lock = statement(
    'changes.lock',
    `select last from ${schema}.sequencer where shard = $1::smallint for no key update ${skipLocked}`,
  )
  const look = statement(
    'changes.look',
    `select seen.*, row.number, row.size from (select ${seen}) as seen left join lateral (
      select number, (select sum(till - since + 1) from unnest(firsts, lasts) as range (since, till)) as size
      from ${schema}.feed where shard = $1::smallint and position is null and number > $2::bigint
      order by number limit ${stampedAtOnce}) as row on true
    order by row.number`,
  )
  const stamp = statement(
    'changes.stamp',
    `with given as materialized (
      select * from json_to_recordset($2::text::json) as given (number bigint, position bigint))
    update ${schema}.feed as row set position = given.position from given
    where row.shard = $1::smallint and row.number = any(array(select number from given)) and row.number = given.number
      ${isSpread ? 'and row.position is null returning row.number' : ''}`,
  )
  const raise = statement(
    'changes.stamp',
    `update ${schema}.sequencer set last = ($2::text::json ->> 'last'::text)::bigint where shard = $1::smallint`,
  )
  // Positions are dense, so that the row which holds the last entry asked for is found by its position.
  const requested = 'json_to_record($2::text::json) as requested (after bigint, till bigint, last bigint)'
  const read = statement(
    'changes.read',
    `select row.position, pg_catalog.array_to_json(row.runs)::text as runs, pg_catalog.array_to_json(row.firsts)::text as firsts,
      pg_catalog.array_to_json(row.lasts)::text as lasts
    from ${schema}.feed as row
    where row.shard = $1::smallint and row.position > (select after from ${requested})
      and row.position <= least((select last from ${requested}), (
        select cut.position from ${schema}.feed as cut
        where cut.shard = $1::smallint and cut.position >= (select till from ${requested})
        order by cut.position limit 1))
    order by row.position`,
  )
  const entries = statement(
    'changes.entries',
    `select requested.place, ${entryColumnsOf('entry')},
      run.type as run_type, run.version as run_version, run.idempotency_key as run_key
    from json_to_recordset($2::text::json) as requested (place integer, run uuid, first integer, last integer)
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = requested.run and entry.seq between requested.first and requested.last
      order by entry.seq offset 0) as entry
    left join lateral (
      select type, version, idempotency_key from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = requested.run offset 0) as run on true
    order by requested.place, entry.seq`,
  )

  /** Looks at one shard, from where that begins now. */
  async function lookAt(
    x: Execution,
    shard: number,
    statement: Statement,
  ): Promise<{ readonly since: number; readonly rows: readonly Row[] }> {
    const floor = floors[shard] as FeedFloor
    const { since } = floor
    return { since, rows: await floor.look(since, () => x.execute(statement, [shard, since])) }
  }

  async function peekAll(x: Execution): Promise<Peeked> {
    // The shard of the sequencer is asked last: every row that the other shards did not report as behind has its position by
    // then, so `last` includes it.
    const order = shards.toReversed()
    const looks = await Promise.all(order.map((shard) => lookAt(x, shard, shard === 0 ? peekLast : peek)))
    const rows = looks.map(({ since, rows: [row = {}] }, place) => {
      const isAll = row['behind'] !== true
      if (isAll) floors[order[place] as number]?.saw(sightOf(row, since, isAll))
      return row
    })
    return { behind: rows.some((row) => row['behind'] === true), last: Number(rows.at(-1)?.['last']) }
  }

  /**
   * Gives positions to committed rows without one; returns the last position, and the result of each shard. Null if another
   * transaction has locked the row of the sequencer.
   */
  async function sequence(
    x: Execution,
  ): Promise<{ readonly last: number; readonly sights: readonly FeedWalkResult[] } | null> {
    // Sent at once: each looks when the lock has been taken.
    const [locked, ...looks] = await Promise.all([
      x.execute(lock, [0]),
      ...shards.map((shard) => lookAt(x, shard, look)),
    ])
    if (locked.length === 0) return null
    const sights = looks.map(({ since, rows }) => sightOf(rows[0] ?? {}, since, rows.length < stampedAtOnce))
    let last = Number(locked[0]?.['last'])
    const unstamped = looks
      .flatMap(({ rows }, shard) =>
        rows.flatMap((row) =>
          row['number'] === null ? [] : [{ shard, number: Number(row['number']), size: Number(row['size']) }],
        ),
      )
      .sort((a, b) => a.number - b.number)
    if (unstamped.length === 0) return { last, sights }
    const given = shards.map((): { readonly number: number; readonly position: number }[] => [])
    for (const { shard, number, size } of unstamped) given[shard]?.push({ number, position: (last += size) })
    const [, ...stamped] = await Promise.all([
      x.execute(raise, [0, JSON.stringify({ last })]),
      ...given.flatMap((some, shard) => (some.length === 0 ? [] : [x.execute(stamp, [shard, JSON.stringify(some)])])),
    ])
    if (isSpread && stamped.flat().length < unstamped.length)
      throw notVisibleYet('A row of the feed got its position from another')
    return { last, sights }
  }

  /** The same, and takes note of it once that is committed. Returns the last position. */
  async function sequenced(transactions: Transactions, peeked: Peeked): Promise<number> {
    const sequenced = await transactions.transaction('changes.commit', sequence)
    if (sequenced === null) return peeked.last
    for (const [shard, sight] of sequenced.sights.entries()) floors[shard]?.saw(sight)
    return sequenced.last
  }

  async function readRanges(x: Execution, after: number, limit: number, last: number): Promise<readonly Range[]> {
    const till = Math.min(after + limit, Number.MAX_SAFE_INTEGER)
    const values = JSON.stringify({ after, till, last })
    const answers = await Promise.all(shards.map((shard) => x.execute(read, [shard, values])))
    const rows = answers.flat().sort((a, b) => Number(a['position']) - Number(b['position']))
    return withoutGap(rows.flatMap(rangesOf), after).flatMap((range) => cut(range, after, till))
  }

  return {
    async readEnd(x) {
      // Shard 0, which has the sequencer, is asked last, as in `peekAll`.
      const order = shards.toReversed()
      const looks = await Promise.all(order.map((shard) => x.execute(end, [shard, floors[shard]?.since ?? 0])))
      const rows = looks.map(([row = {}]) => row)
      const isComplete = rows.every((row) => row['behind'] !== true)
      return { position: Number(rows.at(-1)?.['last']), isComplete }
    },

    async readChanges(transactions, after, limit) {
      const peeked = await transactions.alone(peekAll)
      const last = peeked.behind ? await sequenced(transactions, peeked) : peeked.last
      return transactions.alone(async (x) => {
        const ranges = await readRanges(x, after, limit, last)
        const placed = ranges.map((range, place) => ({ range, place }))
        const wanted = byShard(dialect, placed, ({ range }) => range.runId)
        const rows = await askShards(x, entries, wanted, (some) =>
          some.map(({ range, place }) => ({ place, run: range.runId, first: range.first, last: range.last })),
        )
        const changes = rows.flatMap((row): readonly Change[] => {
          const range = ranges[Number(row['place'])]
          if (range === undefined) return []
          const entry = entryOf(row)
          const run = {
            runId: range.runId,
            // A reader goes on past a run that is not there: the doctor reports it.
            type: (row['run_type'] ?? '') as string,
            version: Number(row['run_version']),
            key: row['run_key'] as string | null,
          }
          return [{ position: range.position + entry.seq - range.first, ...run, entry }]
        })
        return changes.sort((a, b) => a.position - b.position)
      })
    },
  }
}

function sightOf(row: Row, since: number, isAll: boolean): FeedWalkResult {
  const { highest, xmin, xmax } = row as { readonly highest: unknown; readonly xmin: string; readonly xmax: string }
  return { since, isAll, highest: Number(highest), xmin: BigInt(xmin), xmax: BigInt(xmax) }
}

function rangesOf(row: Row): readonly Range[] {
  const [runs, firsts, lasts] = ['runs', 'firsts', 'lasts'].map((name) => JSON.parse(row[name] as string) as unknown[])
  const ranges = (runs as string[]).map((runId, index) => ({
    runId,
    first: Number(firsts?.[index]),
    last: Number(lasts?.[index]),
  }))
  // The row has the position of its last entry.
  let position = Number(row['position']) + 1
  for (const { first, last } of ranges) position -= last - first + 1
  return ranges.map((range) => {
    const placed = { ...range, position }
    position += range.last - range.first + 1
    return placed
  })
}

/** Those after a position, up to the first gap. */
function withoutGap(ranges: readonly Range[], after: number): readonly Range[] {
  let reached = after
  const end = ranges.findIndex(({ position, first, last }) => {
    if (position > reached + 1) return true
    reached = position + last - first
    return false
  })
  return end === -1 ? ranges : ranges.slice(0, end)
}

/** The part of it after one position, and no further than another. */
function cut({ runId, first, last, position }: Range, after: number, till: number): readonly Range[] {
  const skipped = Math.max(0, after + 1 - position)
  const left = Math.max(0, position + last - first - till)
  if (first + skipped > last - left) return []
  return [{ runId, first: first + skipped, last: last - left, position: position + skipped }]
}
