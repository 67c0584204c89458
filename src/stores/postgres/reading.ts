// Reads that change nothing: rows by their ids, and what a holder needs to go on.

import type { Entry } from '../../core/entry.ts'
import type { Run } from '../../core/run.ts'
import type { Loaded, LoadRequest, Message } from '../../store.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import { entryColumnsOf, entryOf, messageOf, runColumns, runOf } from './rows.ts'
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
  const messages = statement(
    'load.messages',
    `select message.run_id, message.id, message.name, message.data, message.position, message.at
    from (select distinct id::uuid from ${asked}) as asked cross join lateral (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = asked.id and message.taken_by is null
      order by message.position offset 0) as message`,
  )

  async function loadEntries(x: Execution, asked: readonly Placed[]): Promise<ReadonlyMap<number, readonly Entry[]>> {
    const found = new Map<number, Entry[]>()
    const wanted = asked.filter(({ request }) => request.limit > 0)
    const rows = await askShards(x, entries, byShard(dialect, wanted, runIdOf), (some) =>
      some.map(({ place, request: { runId, after, limit } }) => ({ place, run: runId, after, most: limit })),
    )
    for (const row of rows) collect(found, Number(row['place']), entryOf(row))
    return found
  }

  async function loadMessages(
    x: Execution,
    asked: readonly Placed[],
  ): Promise<ReadonlyMap<string, readonly Message[]>> {
    const found = new Map<string, Message[]>()
    const rows = await askShards(x, messages, byShard(dialect, asked, runIdOf), (some) => some.map(runIdOf))
    for (const message of rows.map(messageOf)) collect(found, message.runId, message)
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
      const [byPlace, byRun] = await Promise.all([loadEntries(x, asked), loadMessages(x, asked)])
      return asked.map(({ request: { runId }, place }) => ({
        entries: byPlace.get(place) ?? [],
        messages: byRun.get(runId) ?? [],
      }))
    },
  }
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
