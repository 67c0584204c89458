// The driver over `node:sqlite`, which newer runtimes have built in. It is typed by its shape, because the types of the
// oldest runtime that we support do not know it.

import { nativeRequires } from '../../native-require.ts'
import type { Driver, Row, Value } from './driver.ts'

/** The part of a `DatabaseSync` that we use. */
export interface DatabaseSyncLike {
  prepare(sql: string): {
    run(...values: Value[]): { readonly changes: number | bigint }
    get(...values: Value[]): unknown
    all(...values: Value[]): unknown[]
  }
  exec(sql: string): void
  close(): void
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => DatabaseSyncLike
}

/** A function that opens files with `node:sqlite`; null if this runtime has none. It is there from Node 22.13 on. */
export async function loadNodeSqlite(): Promise<((path: string) => Driver) | null> {
  const [require] = await nativeRequires()
  try {
    const { DatabaseSync } = require('node:sqlite') as NodeSqlite
    return (path) => overNodeSqlite(new DatabaseSync(path))
  } catch {
    return null
  }
}

export function overNodeSqlite(database: DatabaseSyncLike): Driver {
  return {
    name: 'node:sqlite',
    database,
    prepare(sql) {
      const statement = database.prepare(sql)
      return {
        run: (values) => Number(statement.run(...values).changes),
        get: (values) => statement.get(...values) as Row | undefined,
        all: (values) => statement.all(...values) as Row[],
      }
    },
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
  }
}
