// Errors of a SQLite library, translated into our own codes, once. The code depends on who must act: an error that passes by
// itself is STORE_UNAVAILABLE (the engine keeps its work and tries again), one that stays until an operator acts is
// STORE_REFUSED (workers keep their work as well, callers learn at once what to do), an entry that can never be stored is
// ENTRY_REJECTED (the engine finds the entry and fails its run), and any other is a defect of ours.

import { HoldfastError, isHoldfastError, type ErrorCode } from '../../../core/errors/error.ts'

interface Meaning {
  readonly code: ErrorCode
  readonly message: string
}

const unavailable = (message: string): Meaning => ({ code: 'STORE_UNAVAILABLE', message })
const refused = (message: string): Meaning => ({ code: 'STORE_REFUSED', message })
const rejected = (message: string): Meaning => ({ code: 'ENTRY_REJECTED', message })

/** By SQLite's primary result code. */
const meanings: Readonly<Record<number, Meaning>> = {
  5: unavailable(
    'The database is busy: another connection wrote for longer than the storage timeout. Keep transactions short; what is to happen in ' +
      'one that you have begun goes through holdfast.using(tx).',
  ),
  6: unavailable('Another connection of this process has locked a table of the database.'),
  7: unavailable('SQLite is out of memory.'),
  8: refused('The database cannot be written to: check the rights on the file, its folder and its -wal file.'),
  9: unavailable('The statement was interrupted.'),
  10: unavailable('The disk failed to read or write the database.'),
  11: refused('The database file is damaged. Stop, and restore it from a backup.'),
  13: unavailable('The disk is full.'),
  14: unavailable('The database file cannot be opened: check its path, its folder and the rights on them.'),
  15: unavailable('The lock on the database could not be taken; it is tried again.'),
  17: unavailable('The schema changed while a statement ran.'),
  18: rejected('A payload is larger than SQLite can store.'),
  19: rejected('A value breaks a constraint of the database.'),
  20: rejected('A value is of a type that its column does not take.'),
  26: refused('The file is not a SQLite database. Check the path.'),
}

const numbers: Readonly<Record<string, number>> = {
  BUSY: 5,
  LOCKED: 6,
  NOMEM: 7,
  READONLY: 8,
  INTERRUPT: 9,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  PROTOCOL: 15,
  SCHEMA: 17,
  TOOBIG: 18,
  CONSTRAINT: 19,
  MISMATCH: 20,
  NOTADB: 26,
}

/** The error of the store for an error of the library. */
export function translated(error: unknown): HoldfastError {
  if (isHoldfastError(error)) return error
  const number = resultCodeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  const meaning = number === undefined ? undefined : meanings[number]
  const details = { sqlite: number ?? null }
  if (meaning !== undefined) {
    return new HoldfastError(meaning.code, `${meaning.message} SQLite says: ${text}`, { cause: error, details })
  }
  if (text.includes('within a transaction')) {
    const message =
      'The connection that was handed over is inside a transaction of its own. End that, or do this in it: holdfast.using(db).'
    return new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details: { ...details, isNested: true } })
  }
  if (/no such (?:table|column)/.test(text)) {
    const message = `A table or a column is missing. Make the tables with \`holdfast migrate\`. SQLite says: ${text}`
    return new HoldfastError('STORE_REFUSED', message, { cause: error, details })
  }
  const message = `SQLite refused a statement: ${text}. This is a defect of Holdfast: please report it.`
  return new HoldfastError('BUG', message, { cause: error, details })
}

/** SQLite's busy and protocol codes: another connection holds a lock, and nothing has happened. */
const heldUpCodes = new Set<unknown>([5, 15])

/** A transaction has read an older snapshot than the state that it wants to write to. No waiting helps. */
const busySnapshot = 517

/** Whether a call met the lock of another transaction, and may be tried again as it is. */
export function isHeldUp(error: unknown): boolean {
  if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return false
  const { sqlite, isNested } = error.details
  return isNested === true || (heldUpCodes.has(sqlite) && !isSnapshot(error.cause))
}

function isSnapshot(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { errcode, rawCode, code } = error as Readonly<Record<string, unknown>>
  return errcode === busySnapshot || rawCode === busySnapshot || code === 'SQLITE_BUSY_SNAPSHOT'
}

export function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
}

/** SQLite's primary result code: `node:sqlite` gives the number, the others its name. */
function resultCodeOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff
  if ('code' in error && typeof error.code === 'string') {
    const name = /^SQLITE_([A-Z]+)/.exec(error.code)?.[1]
    if (name !== undefined && name in numbers) return numbers[name]
  }
  if ('rawCode' in error && typeof error.rawCode === 'number') return error.rawCode & 0xff
  // When a file cannot be opened, libsql gives the number in its text alone.
  const opening =
    error instanceof Error ? /unable to open connection .*: (\d+)"?\)?$/is.exec(error.message)?.[1] : undefined
  return opening === undefined ? undefined : Number(opening) & 0xff
}
