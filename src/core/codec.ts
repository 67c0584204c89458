// A codec turns a user's value into the text that a journal keeps, and back. The default one writes JSON with a small
// closed set of tags for what JSON lacks; other codecs (encryption, compression) take the same hook.
// Invariant: a value that `encode` accepts comes back equal, or it is refused when it is written, never later.

import { errorClasses, type ErrorClass } from './error-data.ts'
import { HoldfastError } from './error.ts'
import { decodeJson, deepest, Unreadable } from './json-decode.ts'
import { encodeJson } from './json-encode.ts'

export type { ErrorClass } from './error-data.ts'

/** Where a payload stands. A codec that encrypts binds its text to it, so that texts cannot be swapped. */
export interface Place {
  readonly runId: string
  readonly seq: number
  readonly name: string | null
}

/** Turns values into text and back, synchronously: it stands between a step and the commit of its result. */
export interface Codec {
  encode(value: unknown, place: Place): string
  decode(text: string, place: Place): unknown
}

export interface JsonCodecOptions {
  /**
   * How deep the text of a value may be nested, from 1 to 1000. An object or array takes one level, an error or a Set
   * two, a Map three.
   * @default 200
   */
  maxDepth?: number
  /**
   * How many bytes of UTF-8 the text of a value may take.
   * @default 1_048_576
   */
  maxBytes?: number
  /** Classes whose instances come back as such, by the name of the class. Their constructors are not run. */
  errors?: readonly ErrorClass[]
}

/**
 * The default codec: JSON, plus Date, bigint, Uint8Array, Map, Set, Error, undefined, NaN, the infinities and -0.
 * An object with `toJSON` is stored as what that returns; null-prototype objects come back as ordinary ones, and a
 * subclass of a built-in as the built-in. Symbol keys and properties that are not enumerable are no data.
 *
 * @example
 * const codec = jsonCodec({ errors: [PaymentDeclined] })
 */
export function jsonCodec(options: JsonCodecOptions = {}): Codec {
  const limits = { maxDepth: options.maxDepth ?? 200, maxBytes: options.maxBytes ?? 1024 * 1024 }
  if (!Number.isInteger(limits.maxDepth) || limits.maxDepth < 1 || limits.maxDepth > deepest) {
    throw new HoldfastError('INVALID_OPTION', `maxDepth must be a whole number from 1 to ${deepest}.`)
  }
  if (!Number.isInteger(limits.maxBytes) || limits.maxBytes < 1) {
    throw new HoldfastError('INVALID_OPTION', 'maxBytes must be a whole number of at least 1.')
  }
  const classes = errorClasses(options.errors ?? [])
  return {
    encode: (value) => encodeJson(value, limits),
    decode(text, place) {
      try {
        return decodeJson(text, classes)
      } catch (error) {
        throw corrupt(place, error instanceof Unreadable ? error.message : 'it is not the text of a payload', error)
      }
    },
  }
}

/** PAYLOAD_CORRUPT for the payload at a place. The message tells the place and the reason, never the content. */
export function corrupt(place: Place, reason: string, cause: unknown): HoldfastError {
  const of = place.name === null ? '' : ` (${JSON.stringify(place.name)})`
  const message =
    `The payload of entry ${place.seq}${of} of run ${place.runId} cannot be read: ${reason}. ` +
    'It was written by another codec or changed since: configure the codec that wrote it, or repair the entry.'
  return new HoldfastError('PAYLOAD_CORRUPT', message, { cause, details: { ...place, reason } })
}
