// What Postgres or the way to it says when something goes wrong, told in our own codes, once. Who must act decides: what
// passes by itself or with the help of an operator is STORE_UNAVAILABLE (the engine keeps its work and tries again), what can
// never be stored is ENTRY_REJECTED (the engine finds the entry and fails its run), and what is left is a defect of ours.

import { HoldfastError, isHoldfastError, type ErrorCode } from '../../core/error.ts'

/** The five characters with which Postgres names an error; undefined if the error is not from Postgres. */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  const { code } = error
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !isSystemCode(code) ? code : undefined
}

/** Node's own codes may have five letters, too. */
function isSystemCode(code: string): boolean {
  return /^E[A-Z]+$/.test(code)
}

/** Others were in the way, and nothing was done: the same again may succeed at once. */
export function isTransient(state: string | undefined): boolean {
  return state === '40001' || state === '40P01' || isLocked(state)
}

/** Somebody else has locked a row for longer than this statement was to wait. */
export function isLocked(state: string | undefined): boolean {
  return state === '55P03'
}

/** The connection is about to end, or the way to the database has. */
export function isLost(state: string | undefined): boolean {
  return state !== undefined && /^(?:08|57P0[1-5])/.test(state)
}

/** A pooler between us and the database gives every transaction another connection, which does not know the statement. */
export function isStrangeToNames(state: string | undefined): boolean {
  return state === '42P05' || state === '26000'
}

/** A statement before this one failed: that one says why. */
export function isAborted(state: string | undefined): boolean {
  return state === '25P02'
}

export function isUniqueViolation(state: string | undefined): boolean {
  return state === '23505'
}

interface Meaning {
  readonly code: ErrorCode
  readonly message: string
}

const unavailable = (message: string): Meaning => ({ code: 'STORE_UNAVAILABLE', message })

/** By the whole state first, then by its class. */
const meanings: Readonly<Record<string, Meaning>> = {
  '25P02': unavailable(
    'A statement before this one failed, and so has the whole transaction. Roll it back, and begin anew.',
  ),
  '26000': unavailable('A pooler does not know our prepared statements: from here on they go without names.'),
  '25006': unavailable('The database is read-only: it may be a replica, or fail over just now.'),
  '28000': unavailable('The database refuses this user: check the address.'),
  '28P01': unavailable('The database refuses this password: check the address.'),
  '3D000': unavailable('The database does not exist: check the address.'),
  '3F000': unavailable('The schema does not exist. Make it with `holdfast migrate`.'),
  '42501': unavailable('The user of the database may not do this: grant it the rights on the schema.'),
  '42P05': unavailable('A pooler knows our prepared statements of before: from here on they go without names.'),
  '42P01': unavailable('A table is missing. Make the schema with `holdfast migrate`.'),
  '42703': unavailable('A column is missing. Update the schema with `holdfast migrate`.'),
  '53100': unavailable('The disk of the database is full.'),
  '53200': unavailable('The database is out of memory.'),
  '53300': unavailable('The database has no connection left: raise max_connections, or lower the size of the pools.'),
  '57014': unavailable('The database took longer than the storage timeout.'),
  '08': unavailable('The connection to the database failed.'),
  '40': unavailable('Others were in the way too often.'),
  '53': unavailable('The database lacks a resource.'),
  '55': unavailable('Somebody else holds a row for longer than the storage timeout.'),
  '57': unavailable('The database is shutting down or starting.'),
  '58': unavailable('The database failed to read or write.'),
  XX: unavailable('The database is damaged or has a defect. Look at its log.'),
  '22': { code: 'ENTRY_REJECTED', message: 'A value cannot be stored.' },
  '23': { code: 'ENTRY_REJECTED', message: 'A value breaks a constraint of the database.' },
  '54': { code: 'ENTRY_REJECTED', message: 'A payload is larger than the database can store.' },
}

/** The error that a caller of the store gets for what the library threw. */
export function translated(error: unknown): HoldfastError {
  if (isHoldfastError(error)) return error
  const text = error instanceof Error ? error.message : String(error)
  const state = sqlStateOf(error)
  const details = { sqlState: state ?? null }
  if (state === undefined) {
    // A socket that broke, a name that was not found, a pool that had nothing to give in time.
    const message = `The connection to the database failed: ${text}`
    return new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details })
  }
  const meaning = meanings[state] ?? meanings[state.slice(0, 2)]
  if (meaning !== undefined) {
    return new HoldfastError(meaning.code, `${meaning.message} Postgres says: ${text}`, { cause: error, details })
  }
  const message = `Postgres refused a statement: ${text}. This is a defect of Holdfast: please report it.`
  return new HoldfastError('BUG', message, { cause: error, details })
}
