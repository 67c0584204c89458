// Opens a store in a file of Turso, in this process. It is the SQLite store over another driver: the same tables and the same
// statements, and each of them opens files that the other has written.
//
// Turso locks the file for its process, so there is no second one: `multiProcess` is false. Several stores of one process
// share the file. `pragma data_version` is of no use here, so they count their own writes together.

import { closeSync, openSync, readSync, realpathSync } from 'node:fs'
import { someTime, toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Clock, Logger } from '../../core/runtime/ports.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import { Connection } from '../sqlite/driver/connection.ts'
import { inMemory, wholePathOf } from '../sqlite/driver/file-address.ts'
import { shareGate } from '../sqlite/transactions/gate.ts'
import { createPrivately, nowSql, unopened, warnIfShared } from '../sqlite/driver/settings.ts'
import type { WriteCount } from '../sqlite/store-parts.ts'
import { SqliteStore } from '../sqlite/store.ts'
import { loadTurso, openTurso } from './driver.ts'

export interface TursoStoreOptions {
  /** The file, `'app.db'` or `'file:app.db'`, or `':memory:'`. It is created when it is missing, readable by its owner only. */
  readonly path: string
  /** How long a call waits for other writers. Its expiry is STORE_UNAVAILABLE. @default 15 s, half a lease */
  readonly storageTimeout?: Duration
  /** Where time comes from, for tests that own it. @default the database */
  readonly clock?: Pick<Clock, 'now'>
  /** Gets a warning when other users of the machine may open the file. */
  readonly logger?: Pick<Logger, 'warn'>
}

const optionNames = ['path', 'storageTimeout', 'clock', 'logger']

const writesOf = new Map<string, WriteCount>()

/**
 * Opens a store in a file of Turso, through `@tursodatabase/database`, in this process.
 *
 * @example
 * const store = await openTursoStore({ path: 'app.db' })
 * const holdfast = await createHoldfast({ store, workflows: [checkout] })
 */
export async function openTursoStore(options: TursoStoreOptions): Promise<SqliteStore> {
  checkOptions(options, optionNames, 'openTursoStore()')
  const { clock, logger } = options
  const storageMs = toMs(options.storageTimeout ?? '15s', 'storageTimeout', someTime)
  if (typeof options.path !== 'string' || options.path === '') {
    throw new HoldfastError('INVALID_OPTION', "A Turso store needs a path, for example 'app.db' or ':memory:'.")
  }
  const named = wholePathOf(options.path)
  const turso = await loadTurso()
  const path = named === inMemory ? named : prepared(named)
  const db = new Connection(opened(() => openTurso(turso, path), path))
  try {
    // It is not to wait for locks: `CallQueue` does.
    db.exec('pragma busy_timeout = 0')
    // Not for choice: with `off`, measured with 0.7.2, the log is never begun anew and grows for ever.
    db.exec('pragma synchronous = full')
    db.exec('pragma cache_size = -32000')
  } catch (error) {
    db.close()
    throw unopened(error, path)
  }
  const now = (): number => clock?.now() ?? (db.get(nowSql, [])?.['now'] as number)
  const file = path === inMemory ? '' : path
  warnIfShared(file, logger)
  const { gate, letGo } = shareGate(file === '' ? db.database : file)
  return new SqliteStore({
    db,
    now,
    clock,
    state: () => ({ now: now(), version: 0 }),
    writes: writeCountOf(file),
    capabilities: { multiProcess: false, transactions: false },
    gate,
    file,
    storageMs,
    onClose() {
      letGo()
      db.close()
    },
  })
}

/**
 * Makes the missing parts of a file, for its owner alone. Returns the real path of the file: links are followed here, once.
 */
function prepared(named: string): string {
  createPrivately(named)
  const path = realpathSync(named)
  const head = headOf(path)
  if (head.length > 0 && !isSqlite(head)) return path
  assertWritable(head, path)
  // SQLite gives its log the rights of the file; Turso would give it those of any new one.
  createPrivately(`${path}-wal`, path)
  return path
}

function opened<Result>(open: () => Result, path: string): Result {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('locked by another process')) throw unopened(error, path)
    const message =
      `Another process has "${path}" open, and Turso lets one process at a time have a file. ` +
      'Stop the other one, or use sqlite: or postgres: where several processes share their runs.'
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details: { path } })
  }
}

/** How a SQLite file begins, and where it says whether it can give pages back: not zero if it can. */
const magic = 'SQLite format 3\0'
const autoVacuumAt = 52

function headOf(path: string): Buffer {
  const head = Buffer.alloc(autoVacuumAt + 4)
  const file = openSync(path, 'r')
  try {
    return head.subarray(0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}

function isSqlite(head: Buffer): boolean {
  return head.toString('latin1', 0, magic.length) === magic
}

/** Turso opens a file that SQLite has made with auto_vacuum, but refuses every write to it (seen with 0.7.2). */
function assertWritable(head: Buffer, path: string): void {
  if (head.length < autoVacuumAt + 4 || head.readUInt32BE(autoVacuumAt) === 0) return
  const message =
    `"${path}" was made by SQLite so that it can give pages back (auto_vacuum), and Turso cannot write to such a file. Open it ` +
    `with sqlite:, or turn auto_vacuum off while no process has it open: sqlite3 ${path} 'pragma auto_vacuum = none; vacuum'`
  throw new HoldfastError('INVALID_OPTION', message, { details: { path } })
}

function writeCountOf(file: string): WriteCount {
  const fresh = { writes: 0 }
  if (file === '') return fresh
  const known = writesOf.get(file) ?? fresh
  writesOf.set(file, known)
  return known
}
