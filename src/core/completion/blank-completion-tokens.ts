// Takes the secrets of completion tokens out of a text, wherever a run has left one: in a result, in an address that it
// sent, in a tag. The remaining text has the form of a token, so that a body which parses it finds one, and completes
// nothing.

import { readCompletionToken, completionTokenText, type CompletionToken } from './completion-token.ts'

/** In place of a secret. */
export const noSecret = '0'.repeat(40)

/** How long the text of a token can be: that of its parts in base64, with 1 to 15 digits for the entry. */
const [shortest, longest] = [106, 124] as const
const longWords = /[\w-]{106,}/g

/**
 * The same text with the secret of every completion token in it blanked. A token that was encoded once more, as bytes for
 * example, is not found.
 */
export function blankCompletionTokens(text: string): string {
  return text.replaceAll(longWords, blankWord)
}

function blankWord(word: string): string {
  let kept = ''
  let from = 0
  for (let at = 0; at + shortest <= word.length; at += 1) {
    const found = isBeginning(word, at) ? tokenAt(word, at) : null
    if (found === null) continue
    kept += word.slice(from, at) + completionTokenText({ ...found.token, secret: noSecret })
    from = at + found.length
    at = from - 1
  }
  return from === 0 ? word : kept + word.slice(from)
}

/**
 * A token begins with eight hexadecimal digits and a hyphen. Their base64 begins with one of five letters, ends with a `t`
 * and has neither `-` nor `_`: only such a place is decoded.
 */
function isBeginning(word: string, at: number): boolean {
  return 'MNOYZ'.includes(word.charAt(at)) && word.charAt(at + 11) === 't' && !/[-_]/.test(word.slice(at, at + 12))
}

const beginning = /^[0-9a-f]{8}-[0-9a-f-]{27}\.[1-9]\d{0,14}\.[0-9a-f]{40}/

/** Decodes each place once: of how many characters a token is follows from what they say. */
function tokenAt(word: string, at: number): { readonly token: CompletionToken; readonly length: number } | null {
  const found = beginning.exec(decoded(word.slice(at, at + longest)))
  if (found === null) return null
  const length = Math.ceil((found[0].length * 4) / 3)
  const token = readCompletionToken(word.slice(at, at + length))
  return token === null ? null : { token, length }
}

/** The bytes of base64 for URLs, each as one character. A last character that makes no byte is left out. */
function decoded(text: string): string {
  const whole = text.length % 4 === 1 ? text.slice(0, -1) : text
  return atob(whole.replaceAll('-', '+').replaceAll('_', '/'))
}
