// Takes the secrets of tokens out of a text, wherever a run has left one: in a result, in an address that it sent, in a tag. What
// is left has the form of a token, so that a body which looks at it finds one, and completes nothing.

import { fromBase64 } from '../payload/bytes.ts'
import { readToken, tokenText, type Token } from '../model/token.ts'

/** In place of a secret. */
export const noSecret = '0'.repeat(40)

/** How long the text of a token can be: that of its parts in base64, with 1 to 15 digits for the entry. */
const [shortest, longest] = [106, 124] as const
const longWords = /[\w-]{106,}/g

/**
 * The same text with the secret of every token in it blanked. A token that was encoded once more, as bytes for example, is not
 * found.
 */
export function blankTokens(text: string): string {
  return text.replaceAll(longWords, blankWord)
}

function blankWord(word: string): string {
  let kept = ''
  let from = 0
  for (let at = 0; at + shortest <= word.length; at += 1) {
    const found = isBeginning(word, at) ? tokenAt(word, at) : null
    if (found === null) continue
    kept += word.slice(from, at) + tokenText({ ...found.token, secret: noSecret })
    from = at + found.length
    at = from - 1
  }
  return from === 0 ? word : kept + word.slice(from)
}

/** A token begins with eight hexadecimal digits and a hyphen: that tells most words from it. */
function isBeginning(word: string, at: number): boolean {
  if (!'MNOYZ'.includes(word.charAt(at))) return false
  const bytes = fromBase64(word.slice(at, at + 12)) ?? []
  return /^[0-9a-f]{8}-/.test(String.fromCharCode(...bytes))
}

function tokenAt(word: string, at: number): { readonly token: Token; readonly length: number } | null {
  for (let length = Math.min(longest, word.length - at); length >= shortest; length -= 1) {
    const token = readToken(word.slice(at, at + length))
    if (token !== null) return { token, length }
  }
  return null
}
