// A codec around another one that encrypts its text: AES-256-GCM under a random nonce of 96 bits. The text is `enc1.<key
// id>.<nonce, ciphertext and tag in base64url>`, or, if it is about a data subject, `enc2.<key id>.<subject>.<…>`, and its version, its key id and its place are authenticated with it: a text
// that was changed, or moved to another run, entry, message or database, is refused. Invariant: no error shows a key or
// decrypted text.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { corrupt, erased, jsonCodec, type Codec } from '../core/payload/codec.ts'
import { HoldfastError, isHoldfastError } from '../core/errors/error.ts'
import type { Place } from '../core/payload/place.ts'
import { checkOptions, shown } from '../core/text/suggest.ts'
import { currentKey, isKeyId, readKeys, type EncryptionKeys } from './keys.ts'
import { subjectsOf, type SubjectOptions, type Subjects } from './subjects.ts'

export interface EncryptingCodecOptions {
  /** The keys by their id. Those besides `current` only read texts that were written with them. */
  readonly keys: EncryptionKeys
  /** The id of the key to write with. */
  readonly current: string
  /**
   * The codec whose text is encrypted. Compression belongs here, too, but the length of compressed text shows what a secret
   * has in common with text that an attacker chose.
   * @default jsonCodec()
   */
  readonly codec?: Codec
  /**
   * Reads texts that were written before encryption was switched on. While it is on, anyone with write access to the database
   * can insert payloads of their own.
   * @default false
   */
  readonly readPlain?: boolean
  /**
   * The name of the database. Texts of another one are refused, also if it has the same keys. It must stay the same for as long
   * as anything is to be read: say it before a schema is renamed, or restored under another name.
   * @default the schema on Postgres, and none elsewhere
   */
  readonly namespace?: string
  /**
   * Gives each data subject a key of its own. Once that is destroyed, nothing of the subject can be read, and the events of
   * deciders that it had are folded as erased.
   * @default no payload has a subject
   */
  readonly subjects?: SubjectOptions
}

const optionNames = ['keys', 'current', 'codec', 'readPlain', 'namespace', 'subjects']
const version = 'enc1'
/** Of a text with a data subject. */
const subjectVersion = 'enc2'
const algorithm = 'aes-256-gcm'
/** Entries and messages have one payload. */
const field = 'data'
const nonceBytes = 12
const tagBytes = 16

/**
 * A codec that encrypts payloads with AES-256-GCM, each bound to where it stands: inputs, results, outputs, errors, signals,
 * broadcasts, exposed values, log lines, texts of progress and notes of operators. To rotate, deploy the new key everywhere,
 * then make it `current`, then call `holdfast.rekey()` until nothing is left of the old one. A worker is not given runs of a
 * key that it lacks, and one whose payload it cannot read it pauses. One key should write no more than 2³² payloads.
 *
 * Not encrypted, because the engine and its queries read it: the type, version and status of a run, ids, keys, tags and
 * metadata, names, times, reasons of operators, and the engine's own failures. The length of a payload shows, too.
 * Put no secret there; docs/encryption.md has the whole list.
 *
 * @example
 * import { randomBytes } from 'node:crypto'
 * import { createHoldfast } from 'holdfast'
 * import { encryptingCodec } from 'holdfast/encryption'
 *
 * const codec = encryptingCodec({ keys: { '2026-11': randomBytes(32) }, current: '2026-11' })
 * const holdfast = await createHoldfast({ store: 'memory:', codec })
 */
export function encryptingCodec(options: EncryptingCodecOptions): Codec {
  // A message about wrong options shows the given value, and that may be the key itself.
  if (typeof options === 'string') {
    throw invalid(
      'encryptingCodec() takes its options as an object, such as { keys: { "2026-11": key }, current: "2026-11" }.',
    )
  }
  checkOptions(options, optionNames, 'encryptingCodec()')
  const { codec = jsonCodec(), readPlain = false, namespace } = options
  if (typeof readPlain !== 'boolean') throw invalid('`readPlain` must be true or false.')
  if (namespace !== undefined && typeof namespace !== 'string') throw invalid('`namespace` must be a text.')
  checkCodec(codec)
  const bind = (of: Head, place: Place): Buffer => bound(of, place, namespace ?? place.namespace)
  const keys = readKeys(options.keys)
  const current = currentKey(keys, options.current)
  const subjects = subjectsOf(options.subjects)
  const reading = { keys, bind, subjects }
  const isOurs = (text: string): boolean => text.startsWith(`${version}.`) || text.startsWith(`${subjectVersion}.`)
  const seal = (text: string, subject: string | null, place: Place): string => {
    const head: Head = { id: current.id, subject }
    if (subject === null) return encrypt(text, current.key, { head, bounds: bind(head, place) })
    const key = subjects?.key(subject, current.key) ?? null
    // The end of an instance is a fact without its state. Nothing else may be new for a subject that was erased.
    if (key === null && place.kind !== 'succeeded') throw notStorable('its data subject was erased')
    return key === null ? `${headOf(head)}.` : encrypt(text, key, { head, bounds: bind(head, place) })
  }
  return {
    keys: [...keys.keys()],
    keyOf: (text) => (isOurs(text) ? (text.split('.', 2)[1] ?? null) : null),
    currentKey: current.id,
    rekey(text, place) {
      if (!isOurs(text) || text.split('.', 2)[1] === current.id) return text
      const { subject } = partsOf(text, place)
      const opened = decrypt(text, place, reading)
      // What was erased is written without its ciphertext, which nobody can open.
      return opened === null ? `${headOf({ id: current.id, subject })}.` : seal(opened, subject, place)
    },
    comparable: (value, place) => codec.comparable?.(value, place) ?? textOf(codec.encode(value, place)),
    encode: (value, place) => seal(textOf(codec.encode(value, place)), subjects?.of(value, place) ?? null, place),
    decode(text, place) {
      if (isOurs(text)) {
        const opened = decrypt(text, place, reading)
        if (opened === null) throw erased(place)
        return decodeWith(codec, opened, place)
      }
      if (readPlain) return decodeWith(codec, text, place)
      throw corrupt(
        place,
        /^enc[0-9]+\./.test(text)
          ? 'it was encrypted in a way that this version does not know'
          : 'it is not encrypted, and `readPlain` of encryptingCodec() is off',
        undefined,
      )
    },
  }
}

/** What stands in a text before what is encrypted. */
interface Head {
  /** The id of the key. */
  readonly id: string
  /** The id of the data subject; null if it has none. */
  readonly subject: string | null
}

function headOf({ id, subject }: Head): string {
  return subject === null ? `${version}.${id}` : `${subjectVersion}.${id}.${Buffer.from(subject).toString('base64url')}`
}

function encrypt(
  text: string,
  key: Uint8Array,
  { head, bounds }: { readonly head: Head; readonly bounds: Buffer },
): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(bounds)
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${headOf(head)}.${sealed.toString('base64url')}`
}

interface Reading {
  readonly keys: ReadonlyMap<string, Uint8Array>
  readonly bind: (of: Head, place: Place) => Buffer
  readonly subjects: Subjects | null
}

/** The parts of a text of ours. Throws PAYLOAD_CORRUPT. */
function partsOf(text: string, place: Place): Head & { readonly body: string } {
  const [form, id, ...rest] = text.split('.', 5)
  const [subject, body] =
    form === version ? [null, rest[0]] : [Buffer.from(rest[0] ?? '', 'base64url').toString(), rest[1]]
  const isSound =
    isKeyId(id) &&
    body !== undefined &&
    rest.length === (form === version ? 1 : 2) &&
    (subject === null || (subject !== '' && text.startsWith(`${headOf({ id, subject })}.`)))
  if (!isSound) throw corrupt(place, 'it is not a whole encrypted text', undefined)
  return { id, subject, body }
}

/** Null if its data subject was erased. */
function decrypt(text: string, place: Place, { keys, bind, subjects }: Reading): string | null {
  const { id, subject, body } = partsOf(text, place)
  const codecKey = keys.get(id)
  if (codecKey === undefined) {
    throw corrupt(place, `it was encrypted with the key ${shown(id)}, which is not here`, undefined, id)
  }
  if (subject !== null && subjects === null) {
    throw corrupt(place, 'it is about a data subject, and `subjects` of encryptingCodec() is not set', undefined)
  }
  const key = subject === null ? codecKey : (subjects?.key(subject, codecKey) ?? null)
  if (key === null) return null
  const sealed = Buffer.from(body, 'base64url')
  // Decoding skips unknown characters: only the canonical text is read.
  if (sealed.toString('base64url') !== body || sealed.length < nonceBytes + tagBytes) {
    throw corrupt(place, 'it is not a whole encrypted text', undefined)
  }
  try {
    const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
    decipher.setAAD(bind({ id, subject }, place))
    decipher.setAuthTag(sealed.subarray(-tagBytes))
    const opened = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
    return Buffer.concat([opened, decipher.final()]).toString('utf8')
  } catch {
    const text = `it does not open with the key ${shown(id)}: that is another key now, or the text was changed or moved here`
    throw corrupt(place, text, undefined)
  }
}

/**
 * The additional authenticated data: version, key, database, run, entry, the kind of the entry or message, its field, its name,
 * and its data subject. JSON keeps the parts apart, and null from every name.
 */
function bound({ id: key, subject }: Head, { runId, seq, kind, name, id }: Place, namespace: string): Buffer {
  const of = [namespace, runId, seq, kind, field, name, id]
  return Buffer.from(JSON.stringify(subject === null ? [version, key, ...of] : [subjectVersion, key, ...of, subject]))
}

function decodeWith(codec: Codec, text: string, place: Place): unknown {
  try {
    return codec.decode(text, place)
  } catch (error) {
    // No cause: the message of a parser quotes its input.
    const reason: unknown = isHoldfastError(error, 'PAYLOAD_CORRUPT') ? error.details['reason'] : undefined
    throw corrupt(place, typeof reason === 'string' ? reason : 'the codec inside the encryption failed', undefined)
  }
}

function textOf(text: unknown): string {
  if (typeof text !== 'string') throw notStorable('the codec inside the encryption did not return a string')
  // UTF-8 has no place for one half of a pair.
  if (/\p{Surrogate}/u.test(text)) throw notStorable('the codec inside the encryption wrote half of a surrogate pair')
  return text
}

function checkCodec(codec: unknown): void {
  const { encode, decode } = (codec ?? {}) as Partial<Codec>
  if (typeof encode === 'function' && typeof decode === 'function') return
  throw invalid('`codec` must be a codec: an object with `encode` and `decode`.')
}

function notStorable(text: string): HoldfastError {
  return new HoldfastError('NOT_STORABLE', `The value at $ cannot be stored: ${text}.`, {
    details: { path: '$', reason: 'codec' },
  })
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}
