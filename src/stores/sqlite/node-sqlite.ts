// The driver over `node:sqlite`, which newer runtimes have built in. It is typed by its shape, because the types of the
// oldest runtime that we support do not know it.

import type { Driver, Row, Value } from './driver.ts'

/** What we use of a `DatabaseSync`. */
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

/** Opens a file, or answers null if this runtime has no `node:sqlite`. */
export async function openNodeSqlite(path: string): Promise<Driver | null> {
  const name: string = 'node:sqlite'
  let module: NodeSqlite
  try {
    module = (await import(name)) as NodeSqlite
  } catch {
    return null
  }
  return overNodeSqlite(new module.DatabaseSync(path))
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
