// The keys of an encrypting codec: checked once, when it is made, and kept where neither a log nor an error can show them.
// Invariant: no message here holds a key, nor an id that is long enough to be one that was put in the wrong place.

import { HoldfastError } from '../core/errors/error.ts'
import { isPrintable } from '../core/text/printable.ts'
import { didYouMean, shown } from '../core/text/suggest.ts'

/** A key of AES-256: 32 bytes, or their text in base64, base64url or hex. */
export type EncryptionKey = Uint8Array | string

/** Keys by their id. */
export type EncryptionKeys = Readonly<Record<string, EncryptionKey>> | ReadonlyMap<string, EncryptionKey>

/** Shorter than the text of any key. */
const longestId = 32
const keyBytes = 32

export function readKeys(keys: unknown): ReadonlyMap<string, Uint8Array> {
  const read = new Map<string, Uint8Array>()
  for (const [id, key] of entriesOf(keys)) {
    if (!isKeyId(id)) {
      throw invalid(
        `The id of a key must be printable text of 1 to ${longestId} characters without a dot, such as "2026-11".` +
          (typeof id === 'string' && id.length <= longestId ? ` Got ${shown(id)}.` : ''),
      )
    }
    const bytes = bytesOf(key)
    if (bytes?.length !== keyBytes) {
      const got = bytes === undefined ? '' : ` It has ${bytes.length}.`
      throw invalid(
        `The key ${shown(id)} must be ${keyBytes} bytes: a Uint8Array, or their text in base64 or hex.${got} ` +
          'Make one with `openssl rand -base64 32`.',
        { id },
      )
    }
    read.set(id, Uint8Array.from(bytes))
  }
  if (read.size === 0) throw invalid('encryptingCodec() needs at least one key in `keys`, such as { "2026-11": key }.')
  return read
}

/** The key to write with. */
export function currentKey(keys: ReadonlyMap<string, Uint8Array>, current: unknown): { id: string; key: Uint8Array } {
  const key = typeof current === 'string' ? keys.get(current) : undefined
  if (typeof current === 'string' && key !== undefined) return { id: current, key }
  const known = `The ids are: ${[...keys.keys()].map((id) => shown(id)).join(', ')}.`
  if (current === undefined)
    throw invalid(`encryptingCodec() needs \`current\`, the id of the key to write with. ${known}`)
  const text = isKeyId(current) ? `, and ${shown(current)} is not.${didYouMean(current, keys.keys())}` : '.'
  throw invalid(`\`current\` must be the id of one of the keys${text} ${known}`)
}

export function isKeyId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= longestId && !id.includes('.') && isPrintable(id)
}

function entriesOf(keys: unknown): Iterable<readonly [unknown, unknown]> {
  if (keys instanceof Map) return keys as Map<unknown, unknown>
  if (typeof keys === 'object' && keys !== null && !Array.isArray(keys) && !ArrayBuffer.isView(keys)) {
    return Object.entries(keys)
  }
  throw invalid('`keys` must be an object or a Map that gives each key by its id, such as { "2026-11": key }.')
}

/** The bytes of a key; undefined if it is none, or text in no form that is known. */
function bytesOf(key: unknown): Uint8Array | undefined {
  if (key instanceof Uint8Array) return key
  if (typeof key !== 'string') return undefined
  if (/^(?:[0-9a-f]{2})+$/i.test(key) && key.length === 2 * keyBytes) return Buffer.from(key, 'hex')
  const text = key
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/={1,2}$/, '')
  const bytes = Buffer.from(text, 'base64url')
  // Decoding skips unknown characters: only canonical text is read.
  return bytes.toString('base64url') === text ? bytes : undefined
}

function invalid(message: string, details: Record<string, unknown> = {}): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message, { details })
}
