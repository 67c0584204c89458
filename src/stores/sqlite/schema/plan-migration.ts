// The statements that a migration of a SQLite file would execute, of a file that any version has written. The file is only
// read: it is not created, and its settings are not changed.

import { existsSync } from 'node:fs'
import { Connection } from '../driver/connection.ts'
import { loadFileDriver } from '../driver/file-driver.ts'
import { migrationSql, schemaVersion, versionOf } from './schema.ts'
import { assertFile, unopened } from '../driver/settings.ts'

export interface SqlitePlan {
  readonly from: number
  readonly to: number
  /** The statements that would be executed, in order. Empty if there is nothing to do. */
  readonly statements: readonly string[]
}

export async function planSqliteMigration(path: string): Promise<SqlitePlan> {
  const from = existsSync(path) ? await readVersion(path) : 0
  return { from, to: schemaVersion, statements: migrationSql(from) }
}

async function readVersion(path: string): Promise<number> {
  assertFile(path)
  const open = await loadFileDriver()
  try {
    const db = new Connection(open(path))
    try {
      return db.read(() => versionOf(db))
    } finally {
      db.close()
    }
  } catch (error) {
    throw unopened(error, path)
  }
}
