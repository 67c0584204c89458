// Opens a store in a file of Turso, in this process. It is the SQLite store over another driver: the same tables and the
// same statements, and either of them opens what the other has written.
//
// Turso locks the file for its process, so there is no second one: `multiProcess` is false. Several stores of one process
// share the file. `pragma data_version` tells nothing here, so what they count together is their own writes.

import { realpathSync } from 'node:fs'
import { toMs, type Duration } from '../../core/duration.ts'
import { HoldfastError } from '../../core/error.ts'
import type { Clock } from '../../core/ports.ts'
import { checkOptions } from '../../core/suggest.ts'
import { Connection } from '../sqlite/connection.ts'
import { shareGate } from '../sqlite/gate.ts'
import { createPrivately, nowSql, setBusyTimeout } from '../sqlite/settings.ts'
import { SqliteStore, type WriteCount } from '../sqlite/store.ts'
import { translated } from '../sqlite/translate.ts'
import { loadTurso, openTurso } from './driver.ts'

export interface TursoStoreOptions {
  /** The file, or `':memory:'`. It is created when it is missing, readable by its owner only. */
  readonly path: string
  /** How long a call waits for others who write. Its expiry is STORE_UNAVAILABLE. @default 15 s, half a lease */
  readonly storageTimeout?: Duration
  /** Where time comes from, for tests that own it. @default the database */
  readonly clock?: Pick<Clock, 'now'>
}

const optionNames = ['path', 'storageTimeout', 'clock']

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
  const { path, clock } = options
  const storageMs = toMs(options.storageTimeout ?? '15s', 'storageTimeout')
  if (typeof path !== 'string' || path === '') {
    throw new HoldfastError('INVALID_OPTION', "A Turso store needs a path, for example 'app.db' or ':memory:'.")
  }
  const turso = await loadTurso()
  // Unlike SQLite, Turso gives its log the rights of any new file.
  if (path !== ':memory:' && createPrivately(path)) createPrivately(`${path}-wal`)
  const db = new Connection(opened(() => openTurso(turso, path), path))
  try {
    setBusyTimeout(db, storageMs)
    // Not for choice: with `off`, measured with 0.7.2, the log is never begun anew and grows for ever.
    db.exec('pragma synchronous = full')
    db.exec('pragma cache_size = -32000')
  } catch (error) {
    db.close()
    throw translated(error)
  }
  const now = (): number => clock?.now() ?? (db.get(nowSql, [])?.['now'] as number)
  const file = path === ':memory:' ? '' : realpathSync(path)
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

function opened<Result>(open: () => Result, path: string): Result {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('locked by another process')) throw translated(error)
    const message =
      `Another process has "${path}" open, and Turso lets one process at a time have a file. ` +
      'Stop the other one, or use sqlite: or postgres: where several processes share their runs.'
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details: { path } })
  }
}

function writeCountOf(file: string): WriteCount {
  const fresh = { writes: 0 }
  if (file === '') return fresh
  const known = writesOf.get(file) ?? fresh
  writesOf.set(file, known)
  return known
}
