// A codec turns a user's value into the text that a journal keeps, and back. The default one writes JSON with a small
// closed set of tags for what JSON lacks; other codecs (encryption, compression) take the same hook.
// Invariant: a value that `encode` accepts comes back equal, or it is refused when it is written, never later.

import { capitalized } from '../text/capitalized.ts'
import { errorClasses, type ErrorClass } from './error-data.ts'
import { HoldfastError, isHoldfastError } from '../errors/error.ts'
import { decodeJson, deepest, mostBigintDigits, UnreadableJson } from './json-decode.ts'
import { encodeJson } from './json-encode.ts'
import { shownPlace, type Place } from './place.ts'
import { quotedText } from '../text/printable.ts'

export type { ErrorClass } from './error-data.ts'
export type { Place } from './place.ts'

/** Turns values into text and back, synchronously: it stands between a step and the commit of its result. */
export interface Codec {
  encode(value: unknown, place: Place): string
  decode(text: string, place: Place): unknown
  /**
   * A text that equal values share, by which the input of a start that is repeated is compared with the first one. It stays in
   * memory. A codec whose `encode` gives another text each time, as one that encrypts, needs it for values of classes of its
   * own. @default what `encode` gives
   */
  comparable?(value: unknown, place: Place): string
  /**
   * The text of a value is the same at every place, and is read at every place. Unless this is true, a payload that a run
   * receives is encoded anew for its own entry.
   * @default false
   */
  readonly isPlaceless?: boolean
  /**
   * The ids of the keys that it reads with; none if it reads nothing that needs one. A worker is not given runs that were
   * written with any other key. @default it may read everything
   */
  readonly keys?: readonly string[]
  /** The id of the key that a text was written with; null if it needs none. */
  keyOf?(text: string): string | null
  /** The id of the key that it writes with. */
  readonly currentKey?: string
  /** The same text under the current key; itself if it is that already, or needs none. Throws PAYLOAD_CORRUPT. */
  rekey?(text: string, place: Place): string
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
  /**
   * How many digits a bigint may have, from 1 to 100,000.
   * @default 10_000
   */
  maxBigintDigits?: number
  /** Classes whose instances come back as such, by the name of the class. Their constructors are not run. */
  errors?: readonly ErrorClass[]
}

/**
 * The default codec: JSON, plus Date, bigint, Uint8Array, Map, Set, Error, undefined, NaN, the infinities and -0. An object
 * with `toJSON` is stored as the result of `toJSON`; null-prototype objects come back as ordinary ones, and a subclass of a
 * built-in as the built-in. Symbol keys and properties that are not enumerable are no data. Arrays with holes or with
 * properties beside their elements are refused.
 *
 * @example
 * const codec = jsonCodec({ errors: [PaymentDeclined] })
 */
export function jsonCodec(options: JsonCodecOptions = {}): Codec {
  const { maxDepth = 200, maxBytes = 1024 * 1024, maxBigintDigits = 10_000 } = options
  if (!Number.isInteger(maxDepth) || maxDepth < 1 || maxDepth > deepest) {
    throw new HoldfastError('INVALID_OPTION', `maxDepth must be a whole number from 1 to ${deepest}.`)
  }
  if (!Number.isInteger(maxBytes) || maxBytes < 1) {
    throw new HoldfastError('INVALID_OPTION', 'maxBytes must be a whole number of at least 1.')
  }
  if (!Number.isInteger(maxBigintDigits) || maxBigintDigits < 1 || maxBigintDigits > mostBigintDigits) {
    throw new HoldfastError('INVALID_OPTION', `maxBigintDigits must be a whole number from 1 to ${mostBigintDigits}.`)
  }
  const limits = { maxDepth, maxBytes, maxBigintDigits }
  const classes = errorClasses(options.errors ?? [])
  return {
    isPlaceless: true,
    keys: [],
    encode: (value) => encodeJson(value, limits),
    decode(text, place) {
      try {
        return decodeJson(text, classes)
      } catch (error) {
        throw corrupt(place, error instanceof UnreadableJson ? error.message : 'it is not the text of a payload', error)
      }
    },
  }
}

/** PAYLOAD_CORRUPT for a row that the engine did not write so: `what` names it. Nothing of its content is shown. */
export function damagedRow(place: Place, what: string, why: string): HoldfastError {
  const message = `${capitalized(what)} of run ${place.runId} is damaged: ${why}. Put its row back as it was.`
  return new HoldfastError('PAYLOAD_CORRUPT', message, { details: { ...place, reason: why, damaged: what } })
}

/** PAYLOAD_CORRUPT for a payload whose data subject was erased: nobody can read it any more, and nothing is to be repaired. */
export function erased(place: Place): HoldfastError {
  const reason = 'its data subject was erased'
  return new HoldfastError('PAYLOAD_CORRUPT', `The payload of ${shownPlace(place)} cannot be read: ${reason}.`, {
    details: { ...place, reason, erased: true },
  })
}

export function isErased(error: unknown): boolean {
  return isHoldfastError(error, 'PAYLOAD_CORRUPT') && error.details['erased'] === true
}

/**
 * PAYLOAD_CORRUPT for the payload at a place. The message names the place and the reason, never the content; `key` is the id of
 * the key that is missing, if that is the reason.
 */
export function corrupt(place: Place, reason: string, cause: unknown, key?: string): HoldfastError {
  const message =
    `The payload of ${shownPlace(place)} cannot be read: ${reason}. ` +
    (key === undefined
      ? 'It was written by another codec or changed since: configure the codec that wrote it, or repair the entry.'
      : `Add the key ${quotedText(key)} to those that the codec reads with.`)
  return new HoldfastError('PAYLOAD_CORRUPT', message, {
    cause,
    details: { ...place, reason, ...(key === undefined ? {} : { key }) },
  })
}
