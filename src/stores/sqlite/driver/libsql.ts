// The driver over `libsql`, and over `better-sqlite3`, whose shape it has.

import { loadNativeDriver } from '../../load-driver.ts'
import type { Driver, Row, Value } from './driver.ts'

/** The part of a `Database` of libsql or better-sqlite3 that we use. */
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

type LibsqlDatabase = new (path: string, options?: object) => DatabaseLike

/** Loads the package, which runtimes without `node:sqlite` and databases on a server need. `need` says which of them. */
export function loadLibsql(need: string = 'This SQLite store'): Promise<LibsqlDatabase> {
  return loadNativeDriver<LibsqlDatabase>('libsql', need)
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
