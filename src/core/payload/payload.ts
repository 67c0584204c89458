// The way of a payload between a user's value and the journal: value ↔ text (the codec), text ↔ stored text (inline, or a
// reference to an offloaded one). Only HoldfastErrors leave here, also if a codec or a port throws another error. A failure
// must always be recordable: `encodeFailure` drops detail step by step and never throws. The engine's own failures may have
// to be written where the codec cannot help (it fails, or the place is not known yet): such a text is marked, holds a code
// and a message and nothing else, and is read only where an entry holds a failure. So it cannot take the place of a payload
// that a codec authenticates.

import { exceedsUtf8 } from '../text/bytes.ts'
import { corrupt, type Codec } from './codec.ts'
import type { EntryKind } from '../model/entry.ts'
import { isError } from './error-data.ts'
import { leftToOthers } from '../errors/left-to-others.ts'
import { errorCodes, HoldfastError, isHoldfastError, type ErrorCode, messageOf } from '../errors/error.ts'
import { absent, isKey, isReference, longestReference } from './offload-reference.ts'
import { controlRequestPlace, holdsFailure, type Place } from './place.ts'
import type { Note } from '../model/run.ts'
import { isSameText, isSameValue } from './same-value.ts'

/** Where large payloads go instead of the journal: an object store, a table of their own. */
export interface Offload {
  /** Texts of more bytes of UTF-8 than this are put. */
  readonly thresholdBytes: number
  /**
   * Stores a text and answers with a reference to it: 1 to 2,048 letters and digits of ASCII, `.`, `_`, `~`, `=`, `+`, `@`,
   * `-`, and `/` that does not come first, with no part that is `.` or `..`. May be called again for the same place.
   */
  put(text: string, place: Place): Promise<string>
  /**
   * The text of a reference. It is read from the database, so an attacker with write access there chooses it among all
   * answers that `put` may give: fetch nothing that `put` cannot have stored.
   */
  get(reference: string): Promise<string>
  /**
   * For a port whose references are other texts, such as addresses: whether `put` can have answered with this one. A
   * refused reference is never fetched. It is called only with printable text of 1 to 2,048 characters.
   * @default the characters that `put` names
   */
  accepts?(reference: string): boolean
}

const offloaded = 'offload:'
const inline = 'inline:'
const plainMark = '\u0001plain:'
const longestPart = 2000
const unknownFailure = 'Something was thrown that cannot be stored'

export class Payloads {
  /** The name of the database, which is part of every place. */
  readonly namespace: string
  private readonly codec: Codec
  private readonly offload: Offload | undefined

  constructor(codec: Codec, offload?: Offload, namespace = '') {
    this.codec = codec
    this.offload = offload
    this.namespace = namespace
  }

  /** Where the payload of an entry stands. */
  place(runId: string, seq: number, kind: EntryKind, name: string | null): Place {
    return { namespace: this.namespace, runId, seq, kind, name, id: null }
  }

  /** The codec binds its texts to their places: a writer has to know the place. */
  get areBound(): boolean {
    return this.codec.isPlaceless !== true
  }

  /** A note about a control of a run, for the entry that will hold it: as it is, unless the codec binds its texts. */
  note(runId: string, seq: number, kind: 'paused' | 'resumed' | 'retried', note: string | null): Note {
    if (note === null || !this.areBound) return { note }
    return { note: null, sealedNote: this.encode(note, this.place(runId, seq, kind, null)) }
  }

  /** The same for the holder of a run, which writes it anew for the entry with which it pauses the run. */
  requestNote(runId: string, seq: number, note: string | null): Note {
    if (note === null || !this.areBound) return { note }
    return {
      note: null,
      sealedNote: this.encode(note, controlRequestPlace(this.namespace, runId, seq)),
      sealedFor: seq,
    }
  }

  /** A note that was asked of the holder of a run, for its entry. One that cannot be read here is kept as it was written. */
  appliedNote(runId: string, seq: number, requested: Note): Note {
    const { note, sealedNote, sealedFor } = requested
    if (sealedNote === undefined || sealedFor === undefined) return requested
    try {
      const said = this.decode(sealedNote, controlRequestPlace(this.namespace, runId, sealedFor))
      return { note, sealedNote: this.encode(said, this.place(runId, seq, 'paused', null)) }
    } catch {
      return requested
    }
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

  /** The text of any thrown value. Never throws. */
  encodeFailure(error: unknown, place: Place): string {
    // Nothing of the error itself is written past the codec: it may be there to encrypt.
    return detailed(error, (value) => this.encode(value, place)) ?? plainUnknown
  }

  /**
   * The text of a failure of the engine's own, for any entry that holds one and with any codec. It is not encrypted, so no
   * data of a user may be in it: only the code and the message are written.
   */
  plain({ code, message }: HoldfastError): string {
    return plainText(code, message)
  }

  /** The value of a text. Throws PAYLOAD_CORRUPT. */
  decode(text: string, place: Place): unknown {
    if (text.startsWith(plainMark)) return decodePlain(text, place)
    try {
      return this.codec.decode(text, place)
    } catch (cause) {
      if (isHoldfastError(cause, 'PAYLOAD_CORRUPT')) throw cause
      throw corrupt(place, 'the codec failed', cause)
    }
  }

  /**
   * Whether a value is the one that was written as that text, by comparing the codec's texts of both: the codec knows
   * what belongs to a value, and how large one may be. Throws NOT_STORABLE and PAYLOAD_CORRUPT.
   */
  isSame(text: string, value: unknown, place: Place): boolean {
    const written = this.encode(value, place)
    if (written === text) return true
    // As both would be read back: a codec may keep less than it is given.
    const [first, second] = [this.decode(text, place), this.decode(written, place)]
    const problem = this.comparable(second, place)
    if (isSameText(this.comparable(first, place), problem)) return true
    // If the codec's text of one value is the same twice, its answer stands; otherwise only the decoded values can be
    // compared.
    return problem !== this.comparable(second, place) && isSameValue(first, second)
  }

  private comparable(value: unknown, place: Place): string {
    return this.codec.comparable?.(value, place) ?? this.encode(value, place)
  }

  /** Whether the stored text of one place can be stored at another unchanged. */
  isMovable(kept: string): boolean {
    return this.codec.isPlaceless === true && !kept.startsWith(plainMark)
  }

  /**
   * The text of a payload for its receiver: decoded for the place where it was sent, and encoded anew for the place where it
   * is received. Throws PAYLOAD_CORRUPT and NOT_STORABLE.
   */
  received(text: string, from: Place, to: Place): string {
    const value = this.decode(text, from)
    if (!holdsFailure(from.kind)) return this.encode(value, to)
    const written = detailed(value, (part) => this.encode(part, to))
    if (written === undefined) throw notStorable('the codec takes no error')
    return written
  }

  /** Whether a text is stored unchanged, so that no reader needs its place. */
  isKeptAsIs(text: string): boolean {
    return !this.isLarge(text) && !text.startsWith(offloaded) && !text.startsWith(inline)
  }

  private isLarge(text: string): boolean {
    // A failure of the engine's own is small, and found where it is expected.
    return this.offload !== undefined && exceedsUtf8(text, this.offload.thresholdBytes) && !text.startsWith(plainMark)
  }

  /** The ids of the keys that payloads are read with; null if the codec does not name them. */
  get keys(): readonly string[] | null {
    return this.codec.keys ?? null
  }

  /** The id of the key that a text was written with; null if it needs none, or if the codec does not name it. */
  keyOf(text: string): string | null {
    return this.codec.keyOf?.(text) ?? null
  }

  /** The id of the key that payloads are written with; null if they need none. */
  get currentKey(): string | null {
    return this.codec.rekey === undefined ? null : (this.codec.currentKey ?? null)
  }

  /** The same text under the current key. Throws PAYLOAD_CORRUPT. */
  rekey(text: string, place: Place): string {
    return this.codec.rekey?.(text, place) ?? text
  }

  /** The form of a text in the journal: itself, or a marked reference when it is large and there is an offload port. */
  keep(text: string, place: Place): string | Promise<string> {
    if (this.offload !== undefined && this.isLarge(text)) return put(this.offload, text, place)
    return text.startsWith(offloaded) || text.startsWith(inline) ? inline + text : text
  }

  /** The same for a reader: nothing is offloaded. */
  reading(): Payloads {
    const { codec, offload, namespace } = this
    if (offload === undefined) return this
    const reading: Offload = {
      thresholdBytes: Infinity,
      put: (text, place) => offload.put(text, place),
      get: (reference) => offload.get(reference),
      accepts: (reference) => isAccepted(offload, reference),
    }
    return new Payloads(codec, reading, namespace)
  }

  /** The same, where every text is at hand: nothing is put elsewhere, or fetched from there. */
  inline(): Payloads {
    return new Payloads(this.codec, undefined, this.namespace)
  }

  /** The text of a stored payload. Synchronous unless the text was offloaded. */
  fetch(kept: string): string | Promise<string> {
    if (kept.startsWith(inline)) return kept.slice(inline.length)
    if (!kept.startsWith(offloaded)) return kept
    const reference = kept.slice(offloaded.length)
    // The codec refuses this text, and says of which entry.
    return isAccepted(this.offload, reference)
      ? get(this.offload, reference)
      : `${absent}its reference cannot be one that its port returned`
  }
}

/**
 * The result of `write` for an error, with less and less of it as long as it throws; undefined if it takes nothing at all.
 */
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

function plainText(code: ErrorCode, message: string): string {
  return plainMark + JSON.stringify({ code, message: message.slice(0, longestPart) })
}

const plainUnknown = plainText('NOT_STORABLE', unknownFailure)

/** The failure that a marked text holds. Any addition is detected: the engine would not have written it so. */
function decodePlain(text: string, place: Place): HoldfastError {
  if (!holdsFailure(place.kind)) {
    throw corrupt(place, 'it was not written by a codec, and no failure stands here', undefined)
  }
  const { code, message } = parsed(text.slice(plainMark.length))
  const isKnown = errorCodes.includes(code as ErrorCode) && typeof message === 'string'
  if (!isKnown || plainText(code as ErrorCode, message) !== text) {
    throw corrupt(place, 'it was not written by a codec, nor by the engine', undefined)
  }
  const error = new HoldfastError(code as ErrorCode, message)
  delete error.stack
  return error
}

function parsed(text: string): { readonly code?: unknown; readonly message?: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

async function put(offload: Offload, text: string, place: Place): Promise<string> {
  try {
    const reference: unknown = await offload.put(text, place)
    if (!isAccepted(offload, reference)) {
      throw new TypeError(
        offload.accepts === undefined
          ? `offload.put must resolve to a key of 1 to ${longestReference} characters (A–Z, a–z, 0–9, . _ ~ = + @ - and / inside), ` +
              'or the port must have accepts(reference) for its own form of references'
          : 'offload.put resolved to a reference that offload.accepts does not accept',
      )
    }
    return offloaded + reference
  } catch (cause) {
    const message = `A payload of run ${place.runId} could not be offloaded: ${messageOf(cause)}. It is tried again.`
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause, details: { ...place } })
  }
}

/** Whether that port can have answered with it. A process without a port learns of that when a payload is fetched. */
function isAccepted(offload: Offload | undefined, reference: unknown): reference is string {
  if (!isReference(reference)) return false
  if (offload?.accepts === undefined) return isKey(reference)
  try {
    return offload.accepts(reference)
  } catch {
    return false
  }
}

async function get(offload: Offload | undefined, reference: string): Promise<string> {
  if (offload === undefined) throw portMissing(reference)
  try {
    const text: unknown = await offload.get(reference)
    if (typeof text !== 'string') throw new TypeError('offload.get did not resolve to a string')
    return text
  } catch (cause) {
    const message =
      'An offloaded payload could not be fetched. Check the offload port and that it still has the object.'
    throw new HoldfastError('STORE_UNAVAILABLE', message, { cause, details: { reference } })
  }
}

/** Another process has the port, or this one will after its next deployment: waiting here would not help. */
function portMissing(reference: string): HoldfastError {
  const message =
    'A payload was offloaded, and this process has no `offload` port to fetch it with: give createHoldfast({ offload }) the ' +
    'one that it was written with.'
  return leftToOthers('INVALID_OPTION', message, { port: 'offload', reference })
}

/** A new error with nothing but the name and message of the thrown value, and its class if that is asked for. */
function reduced(thrown: unknown, isClassKept: boolean, refusal?: unknown): Error {
  const source = (typeof thrown === 'object' ? thrown : undefined) as Error
  const problem = shortText(() => (refusal as Error).message) ?? ''
  const plain = new Error(shortText(() => source.message) ?? `The thrown value has no message. ${problem}`.trim())
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

function notStorable(problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError('NOT_STORABLE', `The value at $ cannot be stored: ${problem}.`, {
    details: { path: '$', reason: 'codec' },
    ...(cause === undefined ? {} : { cause }),
  })
}
