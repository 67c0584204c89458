// What a SQLite library throws, told in our own codes, once. Who must act decides: what passes by itself or with the help
// of an operator is STORE_UNAVAILABLE (the engine keeps its work and tries again), what can never be stored is
// ENTRY_REJECTED (the engine finds the entry and fails its run), and what is left is a defect of ours.

import { HoldfastError, isHoldfastError, type ErrorCode } from '../../core/error.ts'

interface Meaning {
  readonly code: ErrorCode
  readonly message: string
}

const unavailable = (message: string): Meaning => ({ code: 'STORE_UNAVAILABLE', message })
const rejected = (message: string): Meaning => ({ code: 'ENTRY_REJECTED', message })

/** By SQLite's primary result code. */
const meanings: Readonly<Record<number, Meaning>> = {
  5: unavailable('The database is busy: somebody else wrote for longer than the storage timeout.'),
  6: unavailable('A table of the database is locked by somebody else in this process.'),
  7: unavailable('SQLite is out of memory.'),
  8: unavailable('The database cannot be written to: check the rights on the file, its folder and its -wal file.'),
  9: unavailable('The statement was interrupted.'),
  10: unavailable('The disk failed to read or write the database.'),
  11: unavailable('The database file is damaged. Stop, and restore it from a backup.'),
  13: unavailable('The disk is full.'),
  14: unavailable('The database file cannot be opened: check its path, its folder and the rights on them.'),
  15: unavailable('The lock on the database could not be taken; it is tried again.'),
  17: unavailable('The schema changed while a statement ran.'),
  18: rejected('A payload is larger than SQLite can store.'),
  19: rejected('A value breaks a constraint of the database.'),
  20: rejected('A value is of a type that its column does not take.'),
  26: unavailable('The file is not a SQLite database. Check the path.'),
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

/** The error that a caller of the store gets for what a library threw. */
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
    const message = 'The connection that was handed over is inside a transaction of its own; it is tried again.'
    return new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details })
  }
  if (/no such (?:table|column)/.test(text)) {
    const message = `A table or a column is missing. Make the tables with \`holdfast migrate\`. SQLite says: ${text}`
    return new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details })
  }
  const message = `SQLite refused a statement: ${text}. This is a defect of Holdfast: please report it.`
  return new HoldfastError('BUG', message, { cause: error, details })
}

/** SQLite's primary result code: `node:sqlite` tells the number, the others its name. */
function resultCodeOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff
  if ('code' in error && typeof error.code === 'string') {
    const name = /^SQLITE_([A-Z]+)/.exec(error.code)?.[1]
    if (name !== undefined && name in numbers) return numbers[name]
  }
  if ('rawCode' in error && typeof error.rawCode === 'number') return error.rawCode & 0xff
  return undefined
}
