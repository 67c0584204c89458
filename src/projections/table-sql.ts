// The table of a table projection, in the SQL that SQLite and Postgres share. Names are quoted, values are always bound.

import { HoldfastError } from '../core/errors/error.ts'
import { shown } from '../core/text/suggest.ts'

/** What a column can hold; every column can hold null, too. */
export type ColumnType = 'text' | 'integer' | 'number' | 'boolean'

export type ColumnTypes = Readonly<Record<string, ColumnType>>

export type Cell = string | number | boolean | null

export interface StoredRow {
  readonly id: string
  readonly cells: Readonly<Record<string, Cell>>
  readonly position: number
  readonly at: Date
}

/** Of both databases: SQLite takes any name of a type, and goes by what is in it. */
export const sqlTypes: Readonly<Record<ColumnType, string>> = {
  text: 'text',
  integer: 'bigint',
  number: 'double precision',
  boolean: 'boolean',
}

/** As many values in one statement as every driver takes. */
const mostValues = 30_000

export class Table {
  private readonly schema: string | null
  private readonly name: string
  private readonly columns: ColumnTypes

  constructor({
    schema,
    name,
    columns,
  }: {
    readonly schema: string | null
    readonly name: string
    readonly columns: ColumnTypes
  }) {
    this.schema = schema
    this.name = name
    this.columns = columns
  }

  /** The table that a rebuild writes. */
  get next(): Table {
    const { schema, name, columns } = this
    return new Table({ schema, name: `${name}_next`, columns })
  }

  /** The statement that creates it. */
  get create(): string {
    const own = Object.entries(this.columns).map(([column, type]) => `${quoted(column)} ${sqlTypes[type]}, `)
    const place = '"position" bigint not null, "at" timestamptz not null'
    return `create table if not exists ${this.target} ("id" text primary key, ${own.join('')}${place})`
  }

  async make(tx: unknown): Promise<void> {
    const handle = handleOf(tx)
    await handle.run(`drop table if exists ${this.target}`, [])
    await handle.run(this.create, [])
  }

  /** Takes the place of that table. */
  async replace(tx: unknown, live: Table): Promise<void> {
    const handle = handleOf(tx)
    await handle.run(`drop table if exists ${live.target}`, [])
    await handle.run(`alter table ${this.target} rename to ${quoted(live.name)}`, [])
  }

  /** The rows of these instances, by their ids; those that have none are not among them. */
  async rows(tx: unknown, ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow['cells']>> {
    const handle = handleOf(tx)
    const names = Object.keys(this.columns)
    const found = new Map<string, StoredRow['cells']>()
    for (const some of parts(ids, mostValues)) {
      const list = ['id', ...names].map(quoted).join(', ')
      const sql = `select ${list} from ${this.target} where "id" in (${places(handle, 0, some.length)})`
      for (const row of await handle.all(sql, some)) {
        const cells = names.map((name) => [name, cellOf(row[name], this.columns[name] as ColumnType)] as const)
        found.set(row['id'] as string, Object.freeze(Object.fromEntries(cells)))
      }
    }
    return found
  }

  async write(tx: unknown, rows: readonly StoredRow[]): Promise<void> {
    const handle = handleOf(tx)
    const names = Object.keys(this.columns)
    const all = ['id', ...names, 'position', 'at']
    const list = all.map(quoted).join(', ')
    const sets = all.slice(1).map((name) => `${quoted(name)} = excluded.${quoted(name)}`)
    for (const some of parts(rows, Math.floor(mostValues / all.length))) {
      const tuples = some.map((_row, nth) => `(${places(handle, nth * all.length, all.length)})`)
      const values = some.flatMap(({ id, cells, position, at }) => [
        id,
        ...names.map((name) => cells[name] ?? null),
        position,
        at.toISOString(),
      ])
      const upsert = `on conflict ("id") do update set ${sets.join(', ')}`
      await handle.run(`insert into ${this.target} (${list}) values ${tuples.join(', ')} ${upsert}`, values)
    }
  }

  async delete(tx: unknown, ids: readonly string[]): Promise<void> {
    const handle = handleOf(tx)
    for (const some of parts(ids, mostValues))
      await handle.run(`delete from ${this.target} where "id" in (${places(handle, 0, some.length)})`, some)
  }

  private get target(): string {
    return this.schema === null ? quoted(this.name) : `${quoted(this.schema)}.${quoted(this.name)}`
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function places(handle: Handle, before: number, count: number): string {
  return Array.from({ length: count }, (_, nth) => handle.place(before + nth + 1)).join(', ')
}

function parts<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const count = Math.ceil(items.length / size)
  return Array.from({ length: count }, (_, nth) => items.slice(nth * size, (nth + 1) * size))
}

/** Drivers give whole numbers as texts or bigints, and SQLite knows no booleans. */
function cellOf(value: unknown, type: ColumnType): Cell {
  if (value === null || value === undefined) return null
  if (type === 'text') return value as string
  return type === 'boolean' ? Number(value) !== 0 : Number(value)
}

/** A transaction of either database, as far as it is needed. */
interface Handle {
  /** The placeholder of the value of that number, from 1 on. */
  readonly place: (nth: number) => string
  readonly run: (sql: string, values: readonly Cell[]) => Promise<unknown>
  readonly all: (sql: string, values: readonly Cell[]) => Promise<readonly Readonly<Record<string, unknown>>[]>
}

interface Client {
  query(sql: string, values: readonly Cell[]): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
}

interface Connection {
  prepare(sql: string): {
    run(...values: readonly Cell[]): unknown
    all(...values: readonly Cell[]): readonly Readonly<Record<string, unknown>>[]
  }
}

function handleOf(tx: unknown): Handle {
  if (isClient(tx)) {
    const query: Handle['all'] = async (sql, values) => (await tx.query(sql, values)).rows
    return { place: (nth) => `$${nth}`, run: query, all: query }
  }
  if (isConnection(tx)) {
    const bound = (values: readonly Cell[]): readonly Cell[] =>
      values.map((value) => (typeof value === 'boolean' ? Number(value) : value))
    return {
      place: () => '?',
      run: async (sql, values) => tx.prepare(sql).run(...bound(values)),
      all: async (sql, values) => tx.prepare(sql).all(...bound(values)),
    }
  }
  throw new HoldfastError(
    'INVALID_OPTION',
    `A table projection writes with a client of pg or the connection of SQLite, and the transaction is ${shown(tx)}. With ` +
      'createHoldfast({ transaction }) of another library, use projection() and write with that.',
  )
}

function isClient(tx: unknown): tx is Client {
  return has(tx, 'query')
}

function isConnection(tx: unknown): tx is Connection {
  return has(tx, 'prepare')
}

function has(tx: unknown, method: string): boolean {
  return typeof tx === 'object' && tx !== null && typeof (tx as Record<string, unknown>)[method] === 'function'
}
