// Which library opens a file of SQLite: `node:sqlite` where the runtime has it, else `libsql`, which its users install.

import { HoldfastError } from '../../../core/errors/error.ts'
import type { Driver, SqliteDriver } from './driver.ts'
import { loadLibsql, overLibsql } from './libsql.ts'
import { loadNodeSqlite } from './node-sqlite.ts'

/** Why `libsql` is needed by an application that did not name it. */
const without = 'This Node has no node:sqlite, which begins with 22.13, so a SQLite store'

/** Loads a library, before anything of the file is touched. Gives back what opens files with it. */
export async function loadFileDriver(name?: SqliteDriver): Promise<(path: string) => Driver> {
  if (name !== 'libsql') {
    const open = await loadNodeSqlite()
    if (open !== null) return open
    if (name !== undefined) {
      const message = `This runtime has no "${name}". Leave the driver out, or use 'libsql'.`
      throw new HoldfastError('INVALID_OPTION', message)
    }
  }
  const Database = await (name === undefined ? loadLibsql(without) : loadLibsql())
  return (path) => overLibsql(new Database(path))
}
