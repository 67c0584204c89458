// Tokens: texts that let somebody outside complete one wait of one run, once. A token names the entry that issued it and tells
// its secret of 160 bits. The entry keeps only a hash of that, so whoever reads the journal can make no token. A worker makes
// the secret anew at every replay, with a key that nobody else reads.

import { fromBase64, toBase64 } from '../payload/bytes.ts'
import { isRunId } from './run-id.ts'
import type { Digest, Random } from '../runtime/ports.ts'

/** What a token says. */
export interface Token {
  readonly runId: string
  /** The `issued` entry. */
  readonly seq: number
  /** What that entry keeps the hash of. */
  readonly secret: string
}

const secretWords = 5
const form = /^([0-9a-f-]{36})\.([1-9]\d{0,14})\.([0-9a-f]{40})$/
/** Far more than a token has, and little enough to be looked at. */
const longestToken = 200

/** Where a token is issued: no other token of any run has the same. */
export interface TokenPlace {
  readonly runId: string
  readonly seq: number
  /** The identity of the call. */
  readonly name: string
}

/** The secret of the token that is issued there: the same for whoever has the key. */
export function derivedSecret(digest: Digest, key: string, { runId, seq, name }: TokenPlace): string {
  return digest.hmac(key, JSON.stringify(['token', runId, seq, name])).slice(0, 8 * secretWords)
}

const hashed = 'sha256:'

/** What an entry keeps of a secret. It cannot be read back. */
export function hashOfSecret(digest: Digest, secret: string): string {
  return hashed + digest.sha256(secret)
}

/** What an entry keeps is a hash, and not the secret itself, as in stores that have no key. */
export function isHashOfSecret(kept: string): boolean {
  return kept.startsWith(hashed)
}

/** Tells whether that is the secret of the entry that keeps `kept`. */
export function isSecretOf(digest: Digest, kept: string, secret: string): boolean {
  return isSameSecret(kept, isHashOfSecret(kept) ? hashOfSecret(digest, secret) : secret)
}

/** A new secret, for where there is no key. It can be guessed as well as the numbers of `random` can. */
export function newSecret(random: Random): string {
  return randomWords(random, secretWords)
}

/** A new key of 256 bits to make secrets with. */
export function newTokenKey(random: Random): string {
  return randomWords(random, 8)
}

function randomWords(random: Random, count: number): string {
  const words = Array.from({ length: count }, () => random.uint32().toString(16).padStart(8, '0'))
  return words.join('')
}

/** The text that is handed out: letters, digits, `-` and `_`, so that it fits into an address. */
export function tokenText({ runId, seq, secret }: Token): string {
  const text = `${runId}.${seq}.${secret}`
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0))
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** What a text says, if it is a token at all; null otherwise, whatever it is. */
export function readToken(text: unknown): Token | null {
  if (typeof text !== 'string' || text.length > longestToken || !/^[\w-]+$/.test(text)) return null
  const padding = '='.repeat((4 - (text.length % 4)) % 4)
  const bytes = fromBase64(text.replaceAll('-', '+').replaceAll('_', '/') + padding)
  if (bytes === undefined) return null
  const [, runId = '', seq = '', secret = ''] = form.exec(String.fromCharCode(...bytes)) ?? []
  return isRunId(runId) ? { runId, seq: Number(seq), secret } : null
}

/** Tells whether two secrets are equal, in a time that does not tell where they differ. */
export function isSameSecret(one: string, other: string): boolean {
  let difference = one.length ^ other.length
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at)
  return difference === 0
}

/** The name, and the id, of the message that completes the wait of that token. No signal of a user's is called so. */
export function tokenSignal(seq: number): string {
  return `${tokenPrefix}${seq}`
}

export const tokenPrefix = 'token:'
