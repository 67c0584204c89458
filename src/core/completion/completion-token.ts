// Completion tokens: texts with which an outside caller completes one wait of one run, once. A token names the entry that
// issued it and contains a secret of 160 bits. The entry keeps only a hash of the secret, so a reader of the journal cannot
// make a token. A worker derives the secret again at every replay, with a key that only workers read.

import { fromBase64, toBase64 } from '../text/bytes.ts'
import { isRunId } from '../model/run-id.ts'
import type { Digest, Random } from '../runtime/ports.ts'

/** The parts of a completion token. */
export interface CompletionToken {
  readonly runId: string
  /** The `issued` entry. */
  readonly seq: number
  /** The secret whose hash is in that entry. */
  readonly secret: string
}

const secretWords = 5
const form = /^([0-9a-f-]{36})\.([1-9]\d{0,14})\.([0-9a-f]{40})$/
/** Far longer than a token, and short enough to be parsed. */
const longestToken = 200

/** Where a token is issued: unique among all tokens of all runs. */
export interface CompletionTokenPlace {
  readonly runId: string
  readonly seq: number
  /** The identity of the call. */
  readonly name: string
}

/** The secret of the token that is issued there: the same in every process that has the key. */
export function derivedSecret(digest: Digest, key: string, { runId, seq, name }: CompletionTokenPlace): string {
  return digest.hmac(key, JSON.stringify(['token', runId, seq, name])).slice(0, 8 * secretWords)
}

const hashed = 'sha256:'

/** The stored form of a secret, a hash. */
export function hashOfSecret(digest: Digest, secret: string): string {
  return hashed + digest.sha256(secret)
}

/** Whether the stored form is a hash, and not the secret itself, as in stores that have no key. */
export function isHashOfSecret(kept: string): boolean {
  return kept.startsWith(hashed)
}

/** Whether that is the secret of the entry that keeps `kept`. */
export function isSecretOf(digest: Digest, kept: string, secret: string): boolean {
  return isSameSecret(kept, isHashOfSecret(kept) ? hashOfSecret(digest, secret) : secret)
}

/** A new secret, for a store without a key. It is as hard to guess as the numbers of `random`. */
export function newSecret(random: Random): string {
  return randomWords(random, secretWords)
}

/** A new key of 256 bits from which secrets are derived. */
export function newTokenKey(random: Random): string {
  return randomWords(random, 8)
}

function randomWords(random: Random, count: number): string {
  const words = Array.from({ length: count }, () => random.uint32().toString(16).padStart(8, '0'))
  return words.join('')
}

/** The text of a completion token: letters, digits, `-` and `_`, so that it fits into a URL. */
export function completionTokenText({ runId, seq, secret }: CompletionToken): string {
  const text = `${runId}.${seq}.${secret}`
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0))
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** The parts of a text, if it is a token; null for any other text. */
export function readCompletionToken(text: unknown): CompletionToken | null {
  if (typeof text !== 'string' || text.length > longestToken || !/^[\w-]+$/.test(text)) return null
  const padding = '='.repeat((4 - (text.length % 4)) % 4)
  const bytes = fromBase64(text.replaceAll('-', '+').replaceAll('_', '/') + padding)
  if (bytes === undefined) return null
  const [, runId = '', seq = '', secret = ''] = form.exec(String.fromCharCode(...bytes)) ?? []
  return isRunId(runId) ? { runId, seq: Number(seq), secret } : null
}

/** Compares two secrets in constant time. */
export function isSameSecret(one: string, other: string): boolean {
  let difference = one.length ^ other.length
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at)
  return difference === 0
}

/** The name, and the id, of the message that completes the wait of that token. No signal of a user can have it. */
export function completionSignal(seq: number): string {
  return `${completionPrefix}${seq}`
}

export const completionPrefix = 'token:'
