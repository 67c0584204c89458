// The driver over `libsql`, and over `better-sqlite3`, whose shape it has.

import { loadDriver } from '../load-driver.ts'
import type { Driver, Row, Value } from './driver.ts'

/** What we use of a `Database` of libsql or better-sqlite3. */
export interface DatabaseLike {
  prepare(sql: string): {
    run(values: readonly Value[]): { readonly changes: number }
    get(values: readonly Value[]): unknown
    all(values: readonly Value[]): unknown[]
  }
  exec(sql: string): unknown
  pragma(source: string): unknown
  close(): unknown
}

/** Loads the package, which runtimes without `node:sqlite` and databases on a server need. */
export async function loadLibsql(): Promise<new (path: string, options?: object) => DatabaseLike> {
  const { default: Database } = await loadDriver('libsql', 'This SQLite store', () => import('libsql'))
  return Database
}

export async function openLibsql(path: string): Promise<Driver> {
  const Database = await loadLibsql()
  return overLibsql(new Database(path))
}

export function overLibsql(database: DatabaseLike): Driver {
  return {
    name: 'libsql',
    database,
    prepare(sql) {
      const statement = database.prepare(sql)
      return {
        run: (values) => statement.run(values).changes,
        get: (values) => statement.get(values) as Row | undefined,
        all: (values) => statement.all(values) as Row[],
      }
    },
    exec: (sql) => void database.exec(sql),
    close: () => void database.close(),
  }
}
