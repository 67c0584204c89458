// The interface of a SQLite library for this store: a handful of synchronous calls, which `node:sqlite`, `libsql`,
// `better-sqlite3` and Turso all have. Nothing else in this folder knows which of them is underneath.

export type Value = string | number | null

export type Row = Readonly<Record<string, unknown>>

export interface Statement {
  /** Executes; answers how many rows were changed. */
  run(values: readonly Value[]): number
  get(values: readonly Value[]): Row | undefined
  all(values: readonly Value[]): readonly Row[]
}

export interface Driver {
  readonly name: SqliteDriver | 'turso'
  /** The library's own object. */
  readonly database: object
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
}

/** The name of a driver that `openSqliteStore` can open files with. */
export type SqliteDriver = 'node:sqlite' | 'libsql'
