// What the tests of the views begin with: a place with a set of views, and rows in our tables by plain SQL.

import { quoteSchema } from '../../../../../src/stores/postgres/schema/schema-name.ts'
import { installViews, viewSchema, type ViewName } from '../../../../../src/stores/postgres/views.ts'
import { migratedPlace, type Place } from '../database.ts'

type Rows = readonly Readonly<Record<string, unknown>>[]

export const at = (ms: number): Date => new Date(ms)
export const statuses = ['pending', 'running', 'waiting', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled']
export const idOf = (index: number): string => `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`

/** A place with the views of a design, and what a statement finds in them: in the set that shows everything, by default. */
export async function installed(name: ViewName, set: 'plain' | 'payloads' = 'payloads') {
  const place = await migratedPlace()
  await installViews(place.pool, { schema: place.schema, views: [name], payloads: true })
  const schema = viewSchema(place.schema, name, set)
  const look = (view: string, rest = ''): Promise<Rows> =>
    place.rows(`select * from ${quoteSchema(schema)}.${view} ${rest}`)
  const columnsOf = async (view: string): Promise<readonly string[]> => {
    const found = await place.rows(`select column_name as name from information_schema.columns
      where table_schema = '${schema}' and table_name = '${view}' order by ordinal_position`)
    return found.map((row) => String(row['name']))
  }
  return { ...place, schema, look, columnsOf, view: quoteSchema(schema) }
}

interface RunRow {
  readonly status?: string
  readonly more?: Readonly<Record<string, string | number | null>>
}

const literal = (value: string | number | null): string =>
  value === null ? 'null' : typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`

export async function addRun(
  { quoted, rows }: Place,
  index: number,
  { status = 'pending', more = {} }: RunRow,
): Promise<void> {
  const row = {
    shard: 0,
    id: idOf(index),
    type: 'shop.order',
    version: 2,
    status,
    created_at: 1000,
    updated_at: 2000,
    ...more,
  }
  const values = Object.values(row).map(literal)
  await rows(`insert into ${quoted}.runs (${Object.keys(row).join(', ')}) values (${values.join(', ')})`)
}

export type EntryRow = readonly [kind: string, name: string | null, meta: unknown, data: string | null]

/** Entries from the first on, at 1100, 1200 …, and the feed that lists them. */
export async function addEntries({ quoted, rows }: Place, index: number, entries: readonly EntryRow[]): Promise<void> {
  for (const [place, [kind, name, meta, data]] of entries.entries()) {
    const text = meta === null ? null : JSON.stringify(meta)
    const values = [0, idOf(index), place + 1, kind, name, text, data, 1100 + 100 * place].map(literal)
    await rows(
      `insert into ${quoted}.journal (shard, run_id, seq, kind, name, meta, data, at) values (${values.join(', ')})`,
    )
  }
  await rows(`update ${quoted}.runs set seq = ${entries.length} where id = '${idOf(index)}'`)
}
