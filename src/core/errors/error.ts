// The one error class of Holdfast and the closed set of its codes.
// A code belongs to a family, and the family says who must act: STYLE and docs/errors.md hold the list.
// Errors are recognised by a brand, not by class identity, because two copies of a package in one process happen.

/** Who must act on an error. */
export type ErrorFamily =
  | 'usage' // the programmer, at definition or call
  | 'not-found' // the caller named something that does not exist
  | 'conflict' // the caller may look again and retry
  | 'failure' // a workflow failed: data in its journal
  | 'drift' // the deployer: code and journal disagree
  | 'unavailable' // the operator, if anyone: it is retried, or may be
  | 'bug' // us

const families = {
  INVALID_OPTION: 'usage',
  INVALID_INPUT: 'usage',
  INVALID_DURATION: 'usage',
  INVALID_NAME: 'usage',
  NOT_STORABLE: 'usage',
  WORKFLOW_EXISTS: 'usage',
  WORKFLOW_UNKNOWN: 'usage',
  STORE_UNKNOWN: 'usage',
  SCHEMA_TOO_NEW: 'usage',
  CLOSED: 'usage',
  CRASH_UNSAFE: 'usage',
  BODY_UNSAFE: 'usage',
  STEP_UNKNOWN: 'usage',
  DECIDE_FAILED: 'usage',
  DECIDE_UNSAFE: 'usage',
  LAW_BROKEN: 'usage',
  ALREADY_ANSWERED: 'usage',
  RUN_NOT_FOUND: 'not-found',
  PROJECTION_UNKNOWN: 'not-found',
  RUN_EXISTS: 'conflict',
  INPUT_CONFLICT: 'conflict',
  WRONG_STATUS: 'conflict',
  RUN_CANCELLING: 'conflict',
  RUN_RESUMED: 'conflict',
  CHILD_REFUSED: 'conflict',
  MAILBOX_FULL: 'conflict',
  TOPIC_FULL: 'conflict',
  PROJECTION_CONFLICT: 'conflict',
  STALE_WRITE: 'conflict',
  LEASE_LOST: 'conflict',
  RUN_FAILED: 'failure',
  RUN_CANCELLED: 'failure',
  RUN_CRASHED: 'failure',
  RUN_TIMEOUT: 'failure',
  RUN_EXPIRED: 'failure',
  CHILD_FAILED: 'failure',
  CHILD_CANCELLED: 'failure',
  STEP_TIMEOUT: 'failure',
  ASK_REFUSED: 'failure',
  ASK_UNANSWERED: 'failure',
  PAYLOAD_CORRUPT: 'failure',
  ENTRY_REJECTED: 'failure',
  INPUT_REJECTED: 'failure',
  DRIFT: 'drift',
  EVENT_UNREADABLE: 'drift',
  RESULT_TIMEOUT: 'unavailable',
  ASK_TIMEOUT: 'unavailable',
  EXECUTE_TIMEOUT: 'unavailable',
  PROJECTION_BEHIND: 'unavailable',
  STORE_UNAVAILABLE: 'unavailable',
  STORE_REFUSED: 'unavailable',
  BUG: 'bug',
} as const satisfies Record<string, ErrorFamily>

/** Every code that Holdfast raises. The set is closed; `docs/errors.md` explains each. */
export type ErrorCode = keyof typeof families

export const errorCodes = Object.keys(families) as ErrorCode[]

const brand = Symbol.for('holdfast.error')

export interface HoldfastErrorOptions {
  readonly cause?: unknown
  readonly details?: Readonly<Record<string, unknown>>
}

/**
 * An error raised by Holdfast: what happened, why, and what to do, with a stable `code`.
 *
 * @example
 * try { await run.result() } catch (error) {
 *   if (isHoldfastError(error, 'RUN_FAILED')) console.error(error.cause)
 * }
 */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError'
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: HoldfastErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.details = echoes.has(code) ? (cut(options.details ?? {}) as Record<string, unknown>) : (options.details ?? {})
    Object.defineProperty(this, brand, { value: true })
  }

  get family(): ErrorFamily {
    return families[this.code]
  }

  /** For `JSON.stringify`, which leaves out the name, the message and the cause of an error. */
  toJSON(): Record<string, unknown> {
    const { name, code, message, details, cause } = this
    return { name, code, message, details, ...(cause === undefined ? {} : { cause: inShort(cause) }) }
  }
}

/** The most nested causes in the JSON: they may form a cycle. */
const mostCauses = 5

/** The cause, and its causes. */
function inShort(cause: unknown, nth = 1): unknown {
  if (!(cause instanceof Error)) return messageOf(cause)
  const { name, code, cause: deeper } = cause as Error & { readonly code?: unknown }
  const text = { name, ...(typeof code === 'string' ? { code } : {}), message: messageOf(cause) }
  return deeper === undefined || nth === mostCauses ? text : { ...text, cause: inShort(deeper, nth + 1) }
}

/**
 * The codes whose details quote a given value. The value may come from anywhere and be of any size, and errors are logged
 * and stored, so it is shortened.
 */
const echoes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'INVALID_OPTION',
  'INVALID_INPUT',
  'INVALID_DURATION',
  'INVALID_NAME',
  'WORKFLOW_UNKNOWN',
  'STEP_UNKNOWN',
  'STORE_UNKNOWN',
  'RUN_NOT_FOUND',
])
const longestEcho = 200
const mostEchoes = 50

function cut(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.length > longestEcho ? `${value.slice(0, longestEcho)}…` : value
  if (typeof value !== 'object' || value === null) return value
  // Our own details are not deeper, and a foreign value need not be traversed further.
  if (depth === 3) return Array.isArray(value) ? 'an array' : 'an object'
  if (Array.isArray(value)) return value.slice(0, mostEchoes).map((one) => cut(one, depth + 1))
  if (Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).slice(0, mostEchoes)
  return Object.fromEntries(entries.map(([name, one]) => [name.slice(0, longestEcho), cut(one, depth + 1)]))
}

/** Whether a value is an error of Holdfast, and, when given, of that code. Never throws. */
export function isHoldfastError(value: unknown, code?: ErrorCode): value is HoldfastError {
  if (typeof value !== 'object' || value === null) return false
  try {
    return brand in value && (code === undefined || (value as { readonly code?: unknown }).code === code)
  } catch {
    return false
  }
}

/**
 * Whether the request itself is not at fault: the store is unavailable, or refuses every such request until an
 * operator repairs it. The work of a run is then kept and sent again.
 */
export function isStoreAway(error: unknown): error is HoldfastError {
  return isHoldfastError(error, 'STORE_UNAVAILABLE') || isHoldfastError(error, 'STORE_REFUSED')
}

/** Whether a policy of the database refuses one row, and accepts others. */
export function isOfOneRow(error: unknown): boolean {
  return isStoreAway(error) && error.details['row'] === true
}

/** Whether every other request to this store would fail in the same way now. */
export function isAboutStore(error: unknown): error is HoldfastError {
  return (isHoldfastError(error, 'STORE_REFUSED') && !isOfOneRow(error)) || isHoldfastError(error, 'SCHEMA_TOO_NEW')
}

/** A failed assertion: it can only be a defect of Holdfast. */
export function bug(message: string, details: Record<string, unknown> = {}): HoldfastError {
  return new HoldfastError('BUG', `${message}. This is a defect of Holdfast: please report it.`, { details })
}

/** The message of a thrown value. Any value can be thrown, so this never throws itself. */
export function messageOf(thrown: unknown): string {
  try {
    const message: unknown = thrown instanceof Error ? thrown.message : thrown
    return typeof message === 'string' ? message : String(message)
  } catch {
    return 'something that cannot be put into words'
  }
}
