// The way of a payload between a user's value and the journal: value ↔ text (the codec), text ↔ what is kept (inline,
// or a reference to where a large text was put). Whatever a codec or a port does, only HoldfastErrors leave here.
// A failure must always be recordable: `encodeFailure` gives up detail step by step and never throws.
// The engine's own failures may have to be written where the codec cannot help (it fails, or the place is not known yet):
// such a text is marked, and holds an error and nothing else, so that it cannot stand for a value that a codec vouches for.

import { exceedsUtf8 } from './bytes.ts'
import { corrupt, jsonCodec, type Codec, type Place } from './codec.ts'
import { isError } from './error-data.ts'
import { HoldfastError, isHoldfastError } from './error.ts'

/** Where large payloads go instead of the journal: an object store, a table of their own. */
export interface Offload {
  /** Texts of more bytes of UTF-8 than this are put. */
  readonly thresholdBytes: number
  /** Stores a text and answers with a reference to it. May be called again for the same place. */
  put(text: string, place: Place): Promise<string>
  get(reference: string): Promise<string>
}

const offloaded = 'offload:'
const inline = 'inline:'
const plainMark = '\u0001plain:'
const longestPart = 2000
const unknownFailure = 'Something was thrown that cannot be stored'
const plainCodec = jsonCodec()
const nowhere: Place = { runId: '', seq: 0, name: null }

export class Payloads {
  private readonly codec: Codec
  private readonly offload: Offload | undefined

  constructor(codec: Codec, offload?: Offload) {
    this.codec = codec
    this.offload = offload
  }

  /** The text of a value. Throws NOT_STORABLE. */
  encode(value: unknown, place: Place): string {
    let text: unknown
    try {
      text = this.codec.encode(value, place)
    } catch (cause) {
      if (isHoldfastError(cause, 'NOT_STORABLE')) throw cause
      throw notStorable('the codec failed', cause)
    }
    // A codec written in JavaScript may well be asynchronous by mistake.
    if (typeof text !== 'string') throw notStorable('the codec did not return a string')
    if (text.startsWith(plainMark)) throw notStorable('the codec wrote a text that only the engine itself may write')
    return text
  }

  /** The text of whatever was thrown. Never throws. */
  encodeFailure(error: unknown, place: Place): string {
    const write = (value: unknown): string => this.encode(value, place)
    // Nothing of the error itself is written past the codec: it may be there to encrypt.
    return detailed(error, write) ?? this.plain(new Error(unknownFailure))
  }

  /**
   * The text of an error of the engine's own, for any place and whatever the codec is. It is not encrypted, so nothing
   * of a user's may be in it. Never throws.
   */
  plain(error: unknown): string {
    const write = (value: unknown): string => {
      if (typeof value !== 'object' || value === null || !isError(value)) throw notStorable('it is no error')
      return plainCodec.encode(value, nowhere)
    }
    return plainMark + (detailed(error, write) ?? `{"$error":{"name":"Error","message":"${unknownFailure}"}}`)
  }

  /** The value of a text. Throws PAYLOAD_CORRUPT. */
  decode(text: string, place: Place): unknown {
    if (text.startsWith(plainMark)) return decodePlain(text.slice(plainMark.length), place)
    try {
      return this.codec.decode(text, place)
    } catch (cause) {
      if (isHoldfastError(cause, 'PAYLOAD_CORRUPT')) throw cause
      throw corrupt(place, 'the codec failed', cause)
    }
  }

  /** What the journal keeps of a text: itself, or a marked reference when it is large and there is an offload port. */
  keep(text: string, place: Place): string | Promise<string> {
    if (this.offload !== undefined && exceedsUtf8(text, this.offload.thresholdBytes)) {
      return put(this.offload, text, place)
    }
    return text.startsWith(offloaded) || text.startsWith(inline) ? inline + text : text
  }

  /** The same for somebody who only looks: nothing is put elsewhere. */
  reading(): Payloads {
    const { codec, offload } = this
    if (offload === undefined) return this
    return new Payloads(codec, {
      thresholdBytes: Infinity,
      put: (text, place) => offload.put(text, place),
      get: (reference) => offload.get(reference),
    })
  }

  /** The same, where every text is at hand: nothing is put elsewhere, or fetched from there. */
  inline(): Payloads {
    return new Payloads(this.codec)
  }

  /** The text of what the journal keeps. Synchronous unless the text was offloaded. */
  fetch(kept: string): string | Promise<string> {
    if (kept.startsWith(inline)) return kept.slice(inline.length)
    return kept.startsWith(offloaded) ? get(this.offload, kept.slice(offloaded.length)) : kept
  }
}

/** What `write` makes of an error, of less and less of it as long as it throws; undefined if it takes nothing at all. */
function detailed(error: unknown, write: (value: unknown) => string): string | undefined {
  let refusal: unknown
  const attempts = [
    () => error,
    () => reduced(error, true),
    () => reduced(error, false, refusal),
    () => new Error(unknownFailure),
  ]
  for (const attempt of attempts) {
    try {
      return write(attempt())
    } catch (cause) {
      refusal ??= cause
    }
  }
  return undefined
}

function decodePlain(text: string, place: Place): Error {
  const value = plainCodec.decode(text, place)
  if (value instanceof Error) return value
  throw corrupt(place, 'it was not written by a codec, and it is no error', undefined)
}

async function put(offload: Offload, text: string, place: Place): Promise<string> {
  try {
    const reference: unknown = await offload.put(text, place)
    if (typeof reference !== 'string') throw new TypeError('offload.put did not resolve to a string')
    return offloaded + reference
  } catch (cause) {
    const message = `A payload of run ${place.runId} could not be offloaded. It is tried again with the entry.`
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause, details: { ...place } })
  }
}

async function get(offload: Offload | undefined, reference: string): Promise<string> {
  try {
    if (offload === undefined) throw new TypeError('no offload port is configured here')
    const text: unknown = await offload.get(reference)
    if (typeof text !== 'string') throw new TypeError('offload.get did not resolve to a string')
    return text
  } catch (cause) {
    const message =
      'An offloaded payload could not be fetched. Check the offload port and that it still has the object.'
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause, details: { reference } })
  }
}

/** A new error with nothing but the name and message of what was thrown, and its class if that is asked for. */
function reduced(thrown: unknown, isClassKept: boolean, refusal?: unknown): Error {
  const source = (typeof thrown === 'object' ? thrown : undefined) as Error
  const told = shortText(() => (refusal as Error).message) ?? ''
  const plain = new Error(shortText(() => source.message) ?? `What was thrown has no message. ${told}`.trim())
  delete plain.stack
  const name = shortText(() => source.name) ?? 'Error'
  Object.defineProperty(plain, 'name', { value: name, configurable: true })
  if (isClassKept) {
    if (!isError(source)) throw new TypeError('No error was thrown')
    Object.setPrototypeOf(plain, Object.getPrototypeOf(source) as object)
  }
  return plain
}

function shortText(read: () => unknown): string | undefined {
  try {
    const text = read()
    return typeof text === 'string' ? text.slice(0, longestPart) : undefined
  } catch {
    return undefined
  }
}

function notStorable(told: string, cause?: unknown): HoldfastError {
  return new HoldfastError('NOT_STORABLE', `The value at $ cannot be stored: ${told}.`, {
    details: { path: '$', reason: 'codec' },
    ...(cause === undefined ? {} : { cause }),
  })
}
