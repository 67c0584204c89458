// Reads that change nothing: rows by their ids, and what a holder needs to go on.

import type { Run } from '../../../core/model/run.ts'
import { messagesAtOnce, type Loaded, type LoadRequest } from '../../../store.ts'
import { cutBy, loadBudgets } from '../../../core/rules/claims/load-budget.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { entryColumnsOf, entryOf, messageColumns, messageOf, runColumns, runOf } from '../schema/rows.ts'
import { askShards, byShard } from '../schema/shards.ts'

export interface ReadQueries {
  /** One answer per id, in order. */
  readRuns(x: Execution, runIds: readonly string[]): Promise<readonly (Run | undefined)[]>
  /** One answer per request, in order. */
  load(x: Execution, requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]>
}

interface Placed {
  readonly request: LoadRequest
  readonly place: number
}

export function createReadQueries(dialect: Dialect): ReadQueries {
  const { schema, isSpread } = dialect
  // Not a join that may be done in any way: whatever the statistics say, each of them is looked up by its key.
  const requested = 'json_array_elements_text($2::text::json) as requested (id)'
  const runs = statement(
    'get.read',
    `select ${runColumns('run')} from ${requested} cross join lateral (
      select * from ${schema}.runs as run where run.shard = $1::smallint and run.id = requested.id::uuid offset 0) as run`,
  )
  // Citus keeps the plan of a statement that names one row of one table, and plans every other one anew.
  const oneRun = statement(
    'get.read',
    `select ${runColumns('run')} from ${schema}.runs as run where run.shard = $1::smallint and run.id = $2::uuid`,
  )
  const entries = statement(
    'load.entries',
    `select requested.place, ${entryColumnsOf('entry')}
    from json_to_recordset($2::text::json) as requested (place integer, run uuid, after bigint, most bigint)
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = requested.run and entry.seq > requested.after
      order by entry.seq limit requested.most) as entry
    order by requested.place, entry.seq`,
  )
  // Measured before any payload is read: the length of a text that lies elsewhere stands in its row. What is before a request
  // in its shard is less than what is before it in all, so some of these may be too much; the rest is cut where they meet.
  const bounded = (columns: string, list: string, place: string): string => `
    select place, ${columns}, bytes from (
      select *, sum(bytes) over (order by place, ${place} rows between unbounded preceding and 1 preceding) as before
      from (${list}) as listed) as counted
    where before is null or before < (select min(most_bytes) from requested)
    order by place, ${place}`
  const boundedEntries = statement(
    'load.entries',
    `with requested as materialized (
      select * from json_to_recordset($2::text::json) as requested (
        place integer, run uuid, after bigint, most bigint, most_bytes bigint))
    ${bounded(
      entryColumnsOf('counted'),
      `select requested.place, ${entryColumnsOf('entry')}, coalesce(octet_length(entry.data), 0) as bytes
      from requested cross join lateral (
        select * from ${schema}.journal as entry
        where entry.shard = $1::smallint and entry.run_id = requested.run and entry.seq > requested.after
        order by entry.seq limit requested.most) as entry`,
      'seq',
    )}`,
  )
  const boundedMessages = statement(
    'load.messages',
    `with requested as materialized (
      select * from json_to_recordset($2::text::json) as requested (
        place integer, run uuid, after bigint, name text, most bigint, most_bytes bigint))
    ${bounded(
      messageColumns('counted'),
      `select requested.place, ${messageColumns('message')}, octet_length(message.data) as bytes
      from requested cross join lateral (
        select * from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = requested.run and message.taken_by is null
          and requested.name is null and message.position > requested.after
        order by message.position limit requested.most) as message
      union all
      select requested.place, ${messageColumns('message')}, octet_length(message.data) as bytes
      from requested cross join lateral (
        select * from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = requested.run and message.name = requested.name
          and message.taken_by is null
        order by message.position limit requested.most) as message`,
      'position',
    )}`,
  )
  const latest = statement(
    'load.entries',
    `select requested.place, ${entryColumnsOf('entry')}
    from json_to_recordset($2::text::json) as requested (place integer, run uuid, kind text, name text)
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = requested.run and entry.kind = requested.kind
        and entry.name = requested.name
      order by entry.seq desc limit 1) as entry`,
  )
  const messages = statement(
    'load.messages',
    `select requested.place, ${messageColumns('message')}
    from json_to_recordset($2::text::json) as requested (place integer, run uuid, after bigint) cross join lateral (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = requested.run and message.taken_by is null
        and message.position > requested.after
      order by message.position limit ${messagesAtOnce}) as message
    order by requested.place, message.position`,
  )
  const namedMessages = statement(
    'load.messages',
    `select requested.place, ${messageColumns('message')}
    from json_to_recordset($2::text::json) as requested (place integer, run uuid, name text, most bigint)
    cross join lateral (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = requested.run and message.name = requested.name
        and message.taken_by is null
      order by message.position limit requested.most) as message
    order by requested.place, message.position`,
  )

  async function readSpread(x: Execution, requested: ReadonlyMap<number, readonly string[]>): Promise<readonly Row[]> {
    const answers = await Promise.all(
      Array.from(requested, ([shard, ids]) => {
        const [only] = ids
        return only !== undefined && ids.length === 1
          ? x.execute(oneRun, [shard, only])
          : x.execute(runs, [shard, JSON.stringify(ids)])
      }),
    )
    return answers.flat()
  }

  async function loadEntries(
    x: Execution,
    requested: readonly Placed[],
    mostBytes: number | undefined,
  ): Promise<ReadonlyMap<number, readonly Row[]>> {
    const found = new Map<number, Row[]>()
    const pages = requested.filter(({ request }) => request.latest === undefined && request.limit > 0)
    const lasts = requested.filter(({ request }) => request.latest !== undefined)
    const answers = await Promise.all([
      askShards(x, mostBytes === undefined ? entries : boundedEntries, byShard(dialect, pages, runIdOf), (some) =>
        some.map(({ place, request: { runId, after, limit } }) => {
          const page = { place, run: runId, after, most: limit }
          return mostBytes === undefined ? page : { ...page, most_bytes: mostBytes }
        }),
      ),
      askShards(x, latest, byShard(dialect, lasts, runIdOf), (some) =>
        some.map(({ place, request }) => ({ place, run: request.runId, ...request.latest })),
      ),
    ])
    for (const row of answers.flat()) collect(found, Number(row['place']), row)
    return found
  }

  async function loadMessages(
    x: Execution,
    requested: readonly Placed[],
    mostBytes: number | undefined,
  ): Promise<ReadonlyMap<number, readonly Row[]>> {
    const found = new Map<number, Row[]>()
    const pages = requested.filter(({ request }) => request.messages === undefined)
    const named = requested.filter(({ request }) => (request.messages?.names.length ?? 0) > 0)
    if (mostBytes !== undefined) {
      const asking = [...pages, ...named].sort((a, b) => a.place - b.place)
      const rows = await askShards(x, boundedMessages, byShard(dialect, asking, runIdOf), (some) =>
        some.flatMap((one) => requestsOf(one).map((messages) => ({ ...messages, most_bytes: mostBytes }))),
      )
      for (const row of rows) collect(found, Number(row['place']), row)
      return found
    }
    const answers = await Promise.all([
      askShards(x, messages, byShard(dialect, pages, runIdOf), (some) => some.map(pageRequest)),
      askShards(x, namedMessages, byShard(dialect, named, runIdOf), (some) => some.flatMap(requestsByName)),
    ])
    for (const row of answers.flat()) collect(found, Number(row['place']), row)
    return found
  }

  return {
    async readRuns(x, runIds) {
      const requested = byShard(dialect, new Set(runIds), itself)
      const rows = isSpread ? await readSpread(x, requested) : await askShards(x, runs, requested, (some) => some)
      const found = new Map(rows.map(runOf).map((run) => [run.id, run]))
      return runIds.map((id) => found.get(id))
    },

    async load(x, requests, mostBytes) {
      const requested = requests.map((request, place) => ({ request, place }))
      const bounds = loadBudgets(mostBytes)
      const [pages, unread] = await Promise.all([
        loadEntries(x, requested, mostBytes),
        loadMessages(x, requested, mostBytes),
      ])
      return requested.map(({ place, request }) => {
        const page = pages.get(place) ?? []
        const entries = request.latest === undefined ? bounds.entries.take(page, rowBytes) : page
        const messages = bounds.messages.take(unread.get(place) ?? [], rowBytes)
        return { entries: entries.map(entryOf), messages: messages.map(messageOf), ...cutBy(bounds) }
      })
    },
  }
}

/** As the statement counted it. */
function rowBytes(row: Row): number {
  return Number(row['bytes'])
}

/** A page of the mailbox, or the first messages of each name. */
function requestsOf(one: Placed): readonly object[] {
  return one.request.messages === undefined ? [{ ...pageRequest(one), most: messagesAtOnce }] : requestsByName(one)
}

function pageRequest({ place, request: { runId, messagesAfter = 0 } }: Placed): object {
  return { place, run: runId, after: messagesAfter }
}

/** One for each name that is asked for. */
function requestsByName({ place, request }: Placed): readonly object[] {
  const { names = [], limit = 0 } = request.messages ?? {}
  return Array.from(new Set(names), (name) => ({ place, run: request.runId, name, most: limit }))
}

function collect<Key, One>(lists: Map<Key, One[]>, key: Key, one: One): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [one])
  else list.push(one)
}

function runIdOf({ request }: Placed): string {
  return request.runId
}

function itself(id: string): string {
  return id
}
