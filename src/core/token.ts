// Tokens: texts that let somebody outside complete one wait of one run, once. A token names the entry that issued it and
// repeats the secret that this entry keeps. Whoever has neither journal nor token can make none: the secret has 160 bits.

import { fromBase64, toBase64 } from './bytes.ts'
import { isRunId } from './id.ts'
import type { Random } from './ports.ts'

/** What a token says. */
export interface Token {
  readonly runId: string
  /** The `issued` entry. */
  readonly seq: number
  /** What that entry keeps. */
  readonly secret: string
}

const secretWords = 5
const form = /^([0-9a-f-]{36})\.([1-9]\d{0,14})\.([0-9a-f]{40})$/
/** Far more than a token has, and little enough to be looked at. */
const longestToken = 200

/** A new secret. It can be guessed as well as the numbers of `random` can. */
export function newSecret(random: Random): string {
  let secret = ''
  for (let word = 0; word < secretWords; word += 1) secret += random.uint32().toString(16).padStart(8, '0')
  return secret
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
