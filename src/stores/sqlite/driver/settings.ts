// The common part of all ways to open a database of this kind: the file is made for its owner alone, and the connection is
// set up so that acknowledged commits survive a loss of power.

import { closeSync, fchmodSync, lstatSync, openSync, readlinkSync, statSync, type Stats } from 'node:fs'
import { platform } from 'node:os'
import { HoldfastError } from '../../../core/errors/error.ts'
import type { Logger } from '../../../core/runtime/ports.ts'
import { CallQueue } from './call-queue.ts'
import type { Connection } from './connection.ts'
import { translated } from './sqlite-errors.ts'

/** How much SQLite waits for the disk, least first. */
export const synchronousLevels = ['off', 'normal', 'full', 'extra'] as const

export type Synchronous = (typeof synchronousLevels)[number]

/** The database's clock: the one expression from which every time in this store comes. */
export const nowExpression = `cast(round((julianday('now') - 2440587.5) * 86400000) as integer)`
export const nowSql = `select ${nowExpression} as now`

const ownerOnly = 0o600

/**
 * Creates a file with the rights of its owner only, or with those of `like`, unless it is there; returns whether it did.
 * Throws INVALID_OPTION at a dangling link: a file at its target would have the rights of any new file, in a place that
 * another user may have chosen.
 */
export function createPrivately(path: string, like?: string): boolean {
  try {
    const file = openSync(path, 'wx', ownerOnly)
    try {
      if (like !== undefined) fchmodSync(file, statSync(like).mode & 0o666)
    } finally {
      closeSync(file)
    }
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    assertFile(path)
    if (code === 'EEXIST') return false
    const message = `The SQLite file "${path}" cannot be created: does its folder exist, and may it be written to?`
    throw new HoldfastError('INVALID_OPTION', message, { cause: error, details: { path, code } })
  }
}

/** Throws INVALID_OPTION at a path that no database can be in. */
export function assertFile(path: string): void {
  const found = lookAt(path)
  if (found === undefined && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw dangling(path)
  if (found === undefined || found.isFile()) return
  const what = found.isDirectory() ? 'a folder' : 'not a file'
  const message = `"${path}" is ${what}. A SQLite store needs a file: name one in a folder, for example 'data/app.db'.`
  throw new HoldfastError('INVALID_OPTION', message, { details: { path } })
}

/** The status of a path. A circle of links, a name that is too long or a folder that is closed is reported as such. */
function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    const message = `The SQLite file "${path}" cannot be looked at (${code}). Check the path, and the rights of its folders.`
    throw new HoldfastError('INVALID_OPTION', message, { cause: error, details: { path, code } })
  }
}

function dangling(path: string): HoldfastError {
  const target = readlinkSync(path)
  const message =
    `"${path}" is a link to "${target}", and there is nothing. No file is made where a link leads: name the file itself, or make ` +
    'an empty one there that only you can read.'
  return new HoldfastError('INVALID_OPTION', message, { details: { path, target } })
}

/** Translates an error of opening a file: a file that is no database is an error of the caller that named it. */
export function unopened(error: unknown, path: string): HoldfastError {
  const storeError = translated(error)
  if (storeError.details['sqlite'] !== notADatabase) return storeError
  const message =
    `"${path}" is not a SQLite database, or it is encrypted. Check the path; a file that does not exist is created. It was ` +
    'not changed.'
  return new HoldfastError('INVALID_OPTION', message, { cause: error, details: { path } })
}

const notADatabase = 26

/** The log of a file is cut to this when it is begun anew: twice what there is between two checkpoints. */
const longestLogBytes = 32 * 1024 * 1024

/** Sets a connection up that the store has opened itself. While another process does the same to a new file, it waits. */
export async function setUp(db: Connection, synchronous: Synchronous, storageMs: number): Promise<void> {
  // SQLite is not to wait for locks: `CallQueue` does.
  db.exec('pragma busy_timeout = 0')
  const calls = new CallQueue({ shut: () => null, waitMs: storageMs })
  await calls.enter(() => db.read(() => turnToWal(db)))
  db.exec(`pragma synchronous = ${synchronous}`)
  // Measured with batches of 200 on libsql: a cache of 32 MB and a log of 16 MB between checkpoints, instead of 2 and 4,
  // gain 40 % of three-step runs and 50 % of enqueues.
  db.exec('pragma cache_size = -32000')
  db.exec('pragma wal_autocheckpoint = 4000')
  db.exec(`pragma journal_size_limit = ${longestLogBytes}`)
}

function turnToWal(db: Connection): void {
  // How pages are given back is decided by the first page that is written: later only VACUUM changes it. It costs nothing that
  // could be measured, with 1, 100 and 1,000 runs at once.
  const isEmpty = Number(db.get('pragma page_count', [])?.['page_count'] ?? 1) === 0
  if (isEmpty) db.exec('pragma auto_vacuum = incremental')
  db.exec('pragma journal_mode = wal')
}

export function warnIfNotDurable(db: Connection, logger: Pick<Logger, 'warn'> | undefined): void {
  const level = Number(db.get('pragma synchronous', [])?.['synchronous'] ?? 2)
  if (level >= 2) return
  logger?.warn(
    `SQLite runs with synchronous=${synchronousLevels[level] ?? level}: the last commits may be lost when the ` +
      'power fails. Use synchronous=full where that matters.',
  )
}

/** Which other users may open a file, by the bits of its mode. */
const others: readonly (readonly [bits: number, who: string])[] = [
  [0o006, 'every user of this machine'],
  [0o060, 'its group'],
]

/**
 * Warns once if any user but its owner may read or write a database, its log or its index. Existing permissions are not
 * changed.
 */
export function warnIfShared(file: string, logger: Pick<Logger, 'warn'> | undefined): void {
  // On Windows the mode of a file does not say who has rights.
  if (file === '' || platform() === 'win32') return
  const open = [file, `${file}-wal`, `${file}-shm`].flatMap((path) => {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    const who = others.find(([bits]) => (mode & bits) !== 0)?.[1]
    return who === undefined ? [] : [{ path, who, mode: (mode & 0o777).toString(8).padStart(4, '0') }]
  })
  const [first] = open
  if (first === undefined) return
  const paths = open.map(({ path }) => `"${path}"`).join(' ')
  logger?.warn(
    `The SQLite file "${first.path}" can be opened by ${first.who} (${first.mode}), with all that runs hold. If that is not ` +
      `wanted: chmod 600 ${paths}`,
    { sharedFiles: open },
  )
}
