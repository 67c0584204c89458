// Reads that change nothing: rows by their ids, and what a holder needs to go on.

import type { Entry } from '../../core/entry.ts'
import type { Run } from '../../core/run.ts'
import { mailAtOnce, type Loaded, type LoadRequest, type Message } from '../../store.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import { entryColumnsOf, entryOf, messageColumns, messageOf, runColumns, runOf } from './rows.ts'
import { askShards, byShard } from './shards.ts'

export interface Reading {
  /** One answer per id, in order. */
  readRuns(x: Execution, runIds: readonly string[]): Promise<readonly (Run | undefined)[]>
  /** One answer per request, in order. */
  load(x: Execution, requests: readonly LoadRequest[]): Promise<readonly Loaded[]>
}

interface Placed {
  readonly request: LoadRequest
  readonly place: number
}

export function reading(dialect: Dialect): Reading {
  const { schema } = dialect
  // Not a join that may be done in any way: whatever the statistics say, each of them is looked up by its key.
  const asked = 'json_array_elements_text($2::text::json) as asked (id)'
  const runs = statement(
    'get.read',
    `select ${runColumns('run')} from ${asked} cross join lateral (
      select * from ${schema}.runs as run where run.shard = $1::smallint and run.id = asked.id::uuid offset 0) as run`,
  )
  const entries = statement(
    'load.entries',
    `select asked.place, ${entryColumnsOf('entry')}
    from json_to_recordset($2::text::json) as asked (place integer, run uuid, after bigint, most bigint)
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = asked.run and entry.seq > asked.after
      order by entry.seq limit asked.most) as entry
    order by asked.place, entry.seq`,
  )
  const latest = statement(
    'load.entries',
    `select asked.place, ${entryColumnsOf('entry')}
    from json_to_recordset($2::text::json) as asked (place integer, run uuid, kind text, name text)
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = asked.run and entry.kind = asked.kind
        and entry.name = asked.name
      order by entry.seq desc limit 1) as entry`,
  )
  const messages = statement(
    'load.messages',
    `select asked.place, ${messageColumns('message')}
    from json_to_recordset($2::text::json) as asked (place integer, run uuid) cross join lateral (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = asked.run and message.taken_by is null
      order by message.position limit ${mailAtOnce}) as message
    order by asked.place, message.position`,
  )
  const namedMessages = statement(
    'load.messages',
    `select asked.place, ${messageColumns('message')}
    from json_to_recordset($2::text::json) as asked (place integer, run uuid, name text, most bigint)
    cross join lateral (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = asked.run and message.name = asked.name
        and message.taken_by is null
      order by message.position limit asked.most) as message
    order by asked.place, message.position`,
  )

  async function loadEntries(x: Execution, asked: readonly Placed[]): Promise<ReadonlyMap<number, readonly Entry[]>> {
    const found = new Map<number, Entry[]>()
    const pages = asked.filter(({ request }) => request.latest === undefined && request.limit > 0)
    const lasts = asked.filter(({ request }) => request.latest !== undefined)
    const answers = await Promise.all([
      askShards(x, entries, byShard(dialect, pages, runIdOf), (some) =>
        some.map(({ place, request: { runId, after, limit } }) => ({ place, run: runId, after, most: limit })),
      ),
      askShards(x, latest, byShard(dialect, lasts, runIdOf), (some) =>
        some.map(({ place, request }) => ({ place, run: request.runId, ...request.latest })),
      ),
    ])
    for (const row of answers.flat()) collect(found, Number(row['place']), entryOf(row))
    return found
  }

  async function loadMessages(
    x: Execution,
    asked: readonly Placed[],
  ): Promise<ReadonlyMap<number, readonly Message[]>> {
    const found = new Map<number, Message[]>()
    const first = asked.filter(({ request }) => request.mail === undefined)
    const named = asked.filter(({ request }) => (request.mail?.names.length ?? 0) > 0)
    const answers = await Promise.all([
      askShards(x, messages, byShard(dialect, first, runIdOf), (some) =>
        some.map(({ place, request: { runId } }) => ({ place, run: runId })),
      ),
      askShards(x, namedMessages, byShard(dialect, named, runIdOf), (some) => some.flatMap(askedByName)),
    ])
    for (const row of answers.flat()) collect(found, Number(row['place']), messageOf(row))
    return found
  }

  return {
    async readRuns(x, runIds) {
      const rows = await askShards(x, runs, byShard(dialect, new Set(runIds), itself), (some) => some)
      const found = new Map(rows.map(runOf).map((run) => [run.id, run]))
      return runIds.map((id) => found.get(id))
    },

    async load(x, requests) {
      const asked = requests.map((request, place) => ({ request, place }))
      const [byPlace, mail] = await Promise.all([loadEntries(x, asked), loadMessages(x, asked)])
      return asked.map(({ place }) => ({ entries: byPlace.get(place) ?? [], messages: mail.get(place) ?? [] }))
    },
  }
}

/** One for each name that is asked for. */
function askedByName({ place, request }: Placed): readonly object[] {
  const { names = [], limit = 0 } = request.mail ?? {}
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
