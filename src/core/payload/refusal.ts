// How the codec refuses a value: the place inside the value as a path, the reason as a word, and the remedy. A message never
// shows the value itself, only names of properties and classes, each cut to a readable length.

import { HoldfastError, isHoldfastError } from '../errors/error.ts'
import { quotedText, visible } from '../text/printable.ts'

/** Why a value was refused: `details.reason` of NOT_STORABLE. */
export type RefusalReason =
  | 'function'
  | 'symbol'
  | 'promise'
  | 'class-instance'
  | 'sparse-array'
  | 'array-property'
  | 'own-property'
  | 'cycle'
  | 'too-deep'
  | 'too-large'
  | 'invalid-date'
  | 'threw'

/** One step of a path: a property, an index, or a piece of path as it stands. */
export type Segment = string | number | { readonly piece: string }

const longestName = 80

/** A path like `$.items[3].price`. */
export function renderPath(segments: readonly (Segment | null)[]): string {
  let path = '$'
  for (const segment of segments) {
    if (segment === null) continue
    if (typeof segment === 'number') path += `[${segment}]`
    else if (typeof segment === 'object') path += segment.piece
    else path += isPlainName(segment) ? `.${segment}` : `[${renderKey(segment)}]`
  }
  return path
}

/** Some letters of identifiers are not drawn, so that two names could look alike. */
function isPlainName(name: string): boolean {
  return /^[\p{ID_Start}_$][\p{ID_Continue}$]{0,79}$/u.test(name) && visible(name) === name
}

export function renderKey(key: string): string {
  return quotedText(key.length > longestName ? `${key.slice(0, longestName)}…` : key)
}

/** The same refusal, which also says of what it is: `The input of "order"`. Any other error is returned as it is. */
export function refusalOf(error: unknown, what: string, details: Readonly<Record<string, unknown>> = {}): unknown {
  if (!isHoldfastError(error, 'NOT_STORABLE')) return error
  const { message, cause } = error
  return new HoldfastError('NOT_STORABLE', `${what} cannot be stored. ${message}`, {
    details: { ...error.details, ...details },
    ...(cause === undefined ? {} : { cause }),
  })
}

export function refusal(path: string, reason: RefusalReason, text: string, advice: string, cause?: unknown) {
  const message = `The value at ${path} cannot be stored: ${text}. ${advice}.`
  return new HoldfastError('NOT_STORABLE', message, {
    details: { path, reason },
    ...(cause === undefined ? {} : { cause }),
  })
}
