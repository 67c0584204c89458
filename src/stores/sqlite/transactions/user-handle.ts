// A connection that a user opened, as this store sees it: recognised by its shape, spoken to in the driver's few calls, and
// asked whether a transaction is open on it.

import { HoldfastError } from '../../../core/errors/error.ts'
import { shown } from '../../../core/text/suggest.ts'
import { Connection } from '../driver/connection.ts'
import type { Driver, Row, Value } from '../driver/driver.ts'
import { originOf } from './loan.ts'

/** The common part of the three libraries. */
interface SqliteHandle {
  prepare(sql: string): {
    run(...values: Value[]): { readonly changes: number | bigint }
    get(...values: Value[]): unknown
    all(...values: Value[]): unknown[]
    /** `libsql` and `better-sqlite3`. */
    safeIntegers?(on: boolean): unknown
    /** `node:sqlite`. */
    setReadBigInts?(on: boolean): unknown
  }
  exec(sql: string): unknown
  /** `libsql` and `better-sqlite3`. Asked for this, a connection of `libsql` that is closed ends the whole process. */
  readonly inTransaction?: boolean
  /** False once it is closed; a method in `node:sqlite`. */
  readonly open?: unknown
  /** `node:sqlite`, in newer runtimes. */
  readonly isTransaction?: boolean
}

export interface UserHandle {
  readonly db: Connection
  /** The connection itself. */
  readonly database: object
  /** The file that it is open on; empty if it lives in memory. */
  readonly file: string
  isInTransaction(): boolean
}

/** Statements stay prepared for as long as their connection lives. */
const known = new WeakMap<object, UserHandle>()

/** Throws INVALID_OPTION if the handle is no connection to SQLite. */
export function userHandle(handle: unknown): UserHandle {
  if (!isSqliteHandle(handle)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      'This store keeps its runs in SQLite: holdfast.using(tx) needs the connection on which your transaction is open, a ' +
        `DatabaseSync of node:sqlite, or a Database of libsql or better-sqlite3. Got ${shown(handle)}.`,
    )
  }
  const database = originOf(handle) as SqliteHandle
  const found = known.get(database)
  if (found !== undefined) return found
  const db = new Connection(driverOf(database), { isTheirs: true })
  const made: UserHandle = {
    db,
    database,
    file: fileOf(db),
    isInTransaction: () =>
      database.open !== false && (database.inTransaction ?? database.isTransaction ?? probe(database)),
  }
  known.set(database, made)
  return made
}

/** A connection that was closed meanwhile has no transaction either. */
export function isInTransaction(user: UserHandle): boolean {
  try {
    return user.isInTransaction()
  } catch {
    return false
  }
}

/** The file of a connection; empty if it lives in memory. */
export function fileOf(db: Connection): string {
  const main = db.read(() => db.all('pragma database_list', []).find((row) => row['name'] === 'main'))
  return (main?.['file'] as string | null | undefined) ?? ''
}

function isSqliteHandle(handle: unknown): handle is SqliteHandle {
  return (
    typeof handle === 'object' &&
    handle !== null &&
    'prepare' in handle &&
    typeof handle.prepare === 'function' &&
    'exec' in handle &&
    typeof handle.exec === 'function'
  )
}

function driverOf(database: SqliteHandle): Driver {
  return {
    name: 'inTransaction' in database ? 'libsql' : 'node:sqlite',
    database,
    prepare(sql) {
      const statement = database.prepare(sql)
      // However their owner wants whole numbers to be read, here they are numbers.
      statement.safeIntegers?.(false)
      statement.setReadBigInts?.(false)
      return {
        run: (values) => Number(statement.run(...values).changes),
        get: (values) => statement.get(...values) as Row | undefined,
        all: (values) => statement.all(...values) as Row[],
      }
    },
    exec: (sql) => void database.exec(sql),
    close: () => undefined,
  }
}

/** Some libraries do not say whether a transaction is open; SQLite does, by refusing a second. */
function probe(database: SqliteHandle): boolean {
  try {
    database.exec('begin')
  } catch {
    return true
  }
  database.exec('rollback')
  return false
}
