// Errors of Postgres or of the connection to it, translated into our own codes, once. The code depends on who must act: an
// error that passes by itself is STORE_UNAVAILABLE (the engine keeps its work and tries again), one that stays until an
// operator acts is STORE_REFUSED (workers keep their work as well, callers learn at once what to do), an entry that can never
// be stored is ENTRY_REJECTED (the engine finds the entry and fails its run), and any other is a defect of ours.

import { isDefect, isConnectionFault } from '../../../core/errors/driver-error.ts'
import { HoldfastError, isHoldfastError, type ErrorCode } from '../../../core/errors/error.ts'

/** The five characters with which Postgres names an error; undefined if the error is not from Postgres. */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  const { code } = error
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !isSystemCode(code) ? code : undefined
}

/** Node's own codes may have five letters, too, and those of Prisma five characters. */
function isSystemCode(code: string): boolean {
  return /^(?:E[A-Z]+$|P[1-9])/.test(code)
}

/** A conflict with another transaction, and nothing was done: the same again may succeed at once. */
export function isTransient(state: string | undefined): boolean {
  return state === '40001' || state === '40P01' || isLocked(state)
}

/** A conflict on a database of several machines, where one shows a commit before the other does: tried again like the others. */
export function notVisibleYet(message: string): Error {
  return Object.assign(new Error(`${message}: it is not visible on all machines yet.`), { code: '40001' })
}

/** Another transaction has locked a row for longer than this statement was to wait. */
export function isLocked(state: string | undefined): boolean {
  return state === '55P03'
}

/** A stored value has another type than the statement expects. */
export function isOfData(error: unknown): boolean {
  const state = sqlStateOf(error) ?? (error instanceof Error ? sqlStateOf(error.cause) : undefined)
  return state?.startsWith('22') === true
}

/** It was given up, mostly because it took longer than the statement timeout. */
export function isCancelled(state: string | undefined): boolean {
  return state === '57014'
}

/** The connection is about to end, or the way to the database has. */
export function isLost(state: string | undefined): boolean {
  return state !== undefined && /^(?:08|25P0[34]|57P0[1-5])/.test(state)
}

/** A pooler between us and the database gives every transaction another connection, which does not know the statement. */
export function isUnknownStatement(state: string | undefined): boolean {
  return state === '42P05' || state === '26000'
}

/** A statement before this one failed: that one says why. */
export function isAborted(state: string | undefined): boolean {
  return state === '25P02'
}

/** The role lacks a right, or a policy refuses a row. */
export function isRight(state: unknown): boolean {
  return state === '42501'
}

/**
 * A policy of row-level security refuses one row: others are not concerned. The server reports that in its own language, but
 * it names the routine in its code that found it.
 */
function isOfRow(error: unknown, state: string | undefined): boolean {
  return isRight(state) && (error as { readonly routine?: unknown }).routine === 'ExecWithCheckOptions'
}

export function isUniqueViolation(state: string | undefined): boolean {
  return state === '23505'
}

interface Meaning {
  readonly code: ErrorCode
  readonly message: string
}

const unavailable = (message: string): Meaning => ({ code: 'STORE_UNAVAILABLE', message })
const refused = (message: string): Meaning => ({ code: 'STORE_REFUSED', message })

/** By the whole state first, then by its class. */
const meanings: Readonly<Record<string, Meaning>> = {
  '25P02': unavailable(
    'A statement before this one failed, and so has the whole transaction. Roll it back, and begin anew.',
  ),
  '25P03': unavailable(
    'The server ended the connection, because a transaction on it was idle for longer than idle_in_transaction_session_timeout.',
  ),
  '25P04': unavailable(
    'The server ended the connection, because a transaction on it took longer than transaction_timeout.',
  ),
  '26000': unavailable('A pooler does not know our prepared statements: from here on they go without names.'),
  '25006': refused(
    'The database is read-only: it may be a replica, or fail over just now; then name the primary in the address. Or ' +
      'default_transaction_read_only is on for this role, database or server; then turn it off.',
  ),
  '28000': refused('The database refuses this user: check the address and pg_hba.conf of the server.'),
  '28P01': refused('The database refuses this password: check the address.'),
  '3D000': refused('The database does not exist: check the address.'),
  '3F000': refused('The schema does not exist. Make it with `holdfast migrate`, or correct the schema option.'),
  '42501': refused(
    'The user of the database lacks a right: grant it a role that `holdfast migrate --roles` makes (a worker performs runs, a ' +
      'starter starts, sends and controls, a migrator migrates and runs rekey), or the missing right.',
  ),
  '42P05': unavailable('A pooler knows our prepared statements of before: from here on they go without names.'),
  '42P01': refused('A table is missing. Make the schema with `holdfast migrate`, or correct the schema option.'),
  '42703': refused('A column is missing. Update the schema with `holdfast migrate`.'),
  '53100': unavailable('The disk of the database is full.'),
  '53200': unavailable('The database is out of memory.'),
  '53300': unavailable('The database has no connection left: raise max_connections, or lower the size of the pools.'),
  '57014': unavailable('The database took longer than the storage timeout.'),
  '08': unavailable('The connection to the database failed.'),
  '40': unavailable('Others were in the way too often.'),
  '53': unavailable('The database lacks a resource.'),
  '55': unavailable('Another transaction has locked a row for longer than a statement waits for it.'),
  '57': unavailable('The database is shutting down or starting.'),
  '58': unavailable('The database failed to read or write.'),
  XX: unavailable('The database is damaged or has a defect. Look at its log.'),
  '22': { code: 'ENTRY_REJECTED', message: 'A value cannot be stored.' },
  '23': { code: 'ENTRY_REJECTED', message: 'A value breaks a constraint of the database.' },
  '54': { code: 'ENTRY_REJECTED', message: 'A payload is larger than the database can store.' },
}

/** The table has row-level security, and one of its policies refuses a write. */
const ofPolicy = refused(
  'A policy of row-level security refuses this row: change the policy, or let the user of the database bypass it.',
)

/** The texts of connection errors without a code, of `pg` and of pools that take its place. */
const connectionWords =
  /connect|connection|terminat|clos|timed? ?out|timeout|socket|network|queryable|pool|client|server|handshake|certificate|ssl|tls|sasl|scram|password|nothing was answered|aborted|ended|destroyed|unreachable|refused|getaddrinfo/i

/** A socket that broke, a name that was not found, a pool that had nothing to give in time. */
function isOfTheConnection(error: unknown, text: string): boolean {
  if (isDefect(error)) return false
  // A value that is no error at all is an event of a socket.
  return !(error instanceof Error) || isConnectionFault(error) || connectionWords.test(text)
}

/**
 * The error of a request whose text cannot be the cause: for a connection, or to commit. Unless Postgres itself reported it,
 * the connection failed.
 */
export function unanswered(error: unknown): unknown {
  return isHoldfastError(error) || sqlStateOf(error) !== undefined ? error : failed(error)
}

function failed(error: unknown): HoldfastError {
  const text = error instanceof Error ? error.message : String(error)
  const message = `The connection to the database failed: ${text}${isUnknownHost(error) ? `. ${unknownHost}` : ''}`
  return new HoldfastError('STORE_UNAVAILABLE', message, { cause: error, details: { sqlState: null } })
}

const unknownHost =
  'Check the host in the address. If its password has an @, a / or another character with a meaning in addresses, write it ' +
  'URL-encoded: %40, %2F.'

/** A wrong part of the address may have been taken for the host. */
function isUnknownHost(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ERR_INVALID_URL')
}

function unexpected(error: unknown, text: string): HoldfastError {
  const message =
    `A statement could not be sent: ${text}. Neither Postgres nor the connection to it said so. If a payload is not the ` +
    'cause, this is a defect of Holdfast: please report it.'
  return new HoldfastError('BUG', message, { cause: error, details: { sqlState: null } })
}

/** The error of a call in a transaction of the user's, for an error of their library: one that nobody knows is not ours. */
export function translatedForUser(error: unknown): HoldfastError {
  const known = translated(error)
  if (isHoldfastError(error) || known.code !== 'BUG' || sqlStateOf(error) !== undefined) return known
  const text = error instanceof Error ? error.message : String(error)
  const message =
    `The library of this transaction did not send a statement: ${text}. Await each call of holdfast.using(tx) before the ` +
    'transaction ends; an object of your own must send each statement with its values, and answer with rows.'
  return new HoldfastError('INVALID_OPTION', message, { cause: error })
}

/** The error of the store for an error of the library. */
export function translated(error: unknown): HoldfastError {
  if (isHoldfastError(error)) return error
  const text = error instanceof Error ? error.message : String(error)
  const state = sqlStateOf(error)
  const details = { sqlState: state ?? null, ...(isOfRow(error, state) ? { row: true } : {}) }
  if (state === undefined) return isOfTheConnection(error, text) ? failed(error) : unexpected(error, text)
  const meaning = isOfRow(error, state) ? ofPolicy : (meanings[state] ?? meanings[state.slice(0, 2)])
  if (meaning !== undefined) {
    return new HoldfastError(meaning.code, `${meaning.message} Postgres says: ${text}`, { cause: error, details })
  }
  const message = `Postgres refused a statement: ${text}. This is a defect of Holdfast: please report it.`
  return new HoldfastError('BUG', message, { cause: error, details })
}
