// What this store asks of a SQLite library: a handful of synchronous calls, which `node:sqlite`, `libsql` and
// `better-sqlite3` all have. Nothing else in this folder knows which of them is underneath.

export type Value = string | number | null

export type Row = Readonly<Record<string, unknown>>

export interface Statement {
  /** Executes; answers how many rows were changed. */
  run(values: readonly Value[]): number
  get(values: readonly Value[]): Row | undefined
  all(values: readonly Value[]): readonly Row[]
}

export interface Driver {
  readonly name: 'node:sqlite' | 'libsql'
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
}

/** The name of a driver that this store can open files with. */
export type DriverName = Driver['name']
