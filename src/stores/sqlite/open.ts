// Opens a SQLite store: finds a driver, creates the file so that only its owner can read it, and sets the connection up so
// that acknowledged commits survive a loss of power.

import { someTime, toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Clock, Logger } from '../../core/runtime/ports.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import { Connection } from './driver/connection.ts'
import type { Driver, SqliteDriver } from './driver/driver.ts'
import { inMemory, wholePathOf } from './driver/file-address.ts'
import { loadFileDriver } from './driver/file-driver.ts'
import { shareGate } from './transactions/gate.ts'
import { fileOf } from './transactions/user-handle.ts'
import { overLibsql, type DatabaseLike } from './driver/libsql.ts'
import { overNodeSqlite, type DatabaseSyncLike } from './driver/node-sqlite.ts'
import {
  createPrivately,
  nowSql,
  setUp,
  synchronousLevels,
  unopened,
  warnIfNotDurable,
  warnIfShared,
  type Synchronous,
} from './driver/settings.ts'
import type { WriteCount } from './store-parts.ts'
import { SqliteStore } from './store.ts'

export interface SqliteStoreOptions {
  /** The file, `'app.db'` or `'file:app.db'`, or `':memory:'`. It is created when it is missing, readable by its owner only. */
  readonly path?: string
  /**
   * A connection that you opened, instead of a path: a `DatabaseSync` of `node:sqlite`, or a `Database` of `libsql` or
   * `better-sqlite3`. It stays yours: only settings that are named here are changed, and closing the store does not close it.
   */
  readonly handle?: DatabaseSyncLike | DatabaseLike
  /** @default `node:sqlite` if the runtime has it, else `libsql` */
  readonly driver?: SqliteDriver
  /** Anything lower than `full` may lose acknowledged commits when the power fails. @default 'full' */
  readonly synchronous?: Synchronous
  /**
   * How long a call waits for other writers, while the process goes on. Its expiry is STORE_UNAVAILABLE. The busy timeout of
   * a connection of yours holds for your own statements alone. @default 15 s, half a lease
   */
  readonly storageTimeout?: Duration
  /** Where time comes from, for tests that own it. @default the database */
  readonly clock?: Pick<Clock, 'now'>
  /**
   * Gets a warning when settings or the rights of the file are less safe than the default, and when a transaction of yours keeps
   * everything waiting.
   */
  readonly logger?: Pick<Logger, 'warn'>
}

const optionNames = ['path', 'handle', 'driver', 'synchronous', 'storageTimeout', 'clock', 'logger']

/** The time, with the number that changes whenever another connection has written. */
const stateSql = `${nowSql}, data_version as version from pragma_data_version`

/** Several stores over one connection of a user must know of each other's writes. */
const writesOf = new WeakMap<object, WriteCount>()

/**
 * Opens a store in a SQLite file, or over a connection that you opened.
 *
 * @example
 * const store = await openSqliteStore({ path: 'app.db' })
 * const holdfast = await createHoldfast({ store, workflows: [checkout] })
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  checkOptions(options, optionNames, 'openSqliteStore()')
  const { path, handle, clock, logger } = options
  const storageMs = toMs(options.storageTimeout ?? '15s', 'storageTimeout', someTime)
  if ((path === undefined) === (handle === undefined)) {
    throw new HoldfastError('INVALID_OPTION', 'openSqliteStore() takes either a path or a handle.')
  }
  const synchronous = checkSynchronous(options.synchronous)
  const driver = handle === undefined ? await openFile(path ?? '', options.driver) : overHandle(handle)
  const db = new Connection(driver, { isTheirs: handle !== undefined })
  try {
    if (handle === undefined) await setUp(db, synchronous ?? 'full', storageMs)
    else if (synchronous !== undefined) db.exec(`pragma synchronous = ${synchronous}`)
    warnIfNotDurable(db, logger)
  } catch (error) {
    if (handle === undefined) db.close()
    throw unopened(error, path ?? 'The connection')
  }
  const file = fileOf(db)
  warnIfShared(file, logger)
  const { gate, letGo } = shareGate(file === '' ? db.database : file)
  return new SqliteStore({
    db,
    now: clock === undefined ? () => db.get(nowSql, [])?.['now'] as number : () => clock.now(),
    clock,
    state: () => {
      const { now, version } = db.get(stateSql, []) as { readonly now: number; readonly version: number }
      return { now: clock?.now() ?? now, version }
    },
    writes: writeCountOf(handle),
    gate,
    file,
    storageMs,
    logger,
    onClose() {
      letGo()
      if (handle === undefined) db.close()
      else db.letGo()
    },
  })
}

function writeCountOf(handle: object | undefined): WriteCount {
  const known = handle === undefined ? undefined : writesOf.get(handle)
  const count = known ?? { writes: 0 }
  if (handle !== undefined) writesOf.set(handle, count)
  return count
}

async function openFile(address: string, name: SqliteDriver | undefined): Promise<Driver> {
  if (address === '') {
    throw new HoldfastError('INVALID_OPTION', "A SQLite store needs a path, for example 'app.db' or ':memory:'.")
  }
  const path = wholePathOf(address)
  const open = await loadFileDriver(name)
  // SQLite gives its -wal and -shm files the rights of the file.
  if (path !== inMemory) createPrivately(path)
  try {
    return open(path)
  } catch (error) {
    throw unopened(error, path)
  }
}

function overHandle(handle: DatabaseSyncLike | DatabaseLike): Driver {
  return 'pragma' in handle ? overLibsql(handle) : overNodeSqlite(handle)
}

function checkSynchronous(level: Synchronous | undefined): Synchronous | undefined {
  if (level === undefined || synchronousLevels.includes(level)) return level
  const message = `openSqliteStore({ synchronous }) is one of ${synchronousLevels.join(', ')}. Got "${level as string}".`
  throw new HoldfastError('INVALID_OPTION', message)
}
