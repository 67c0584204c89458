// The arguments of a page: its limit and its cursor. Cursors come back from outside, from an address or a form, so each kind is
// checked before a store sees it.

import { HoldfastError } from '../../core/errors/error.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { isPrintable } from '../../core/text/printable.ts'
import { shown } from '../../core/text/suggest.ts'

export const mostOnPage = 200

/** Longer than the id of a run and that of any message, also of one that was passed on and sent again. */
const longestCursor = 800

/** Throws INVALID_OPTION unless it is a whole number in these bounds. `name` is that of the call and its option. */
export function checkWhole(
  value: unknown,
  name: string,
  { least, most = Number.MAX_SAFE_INTEGER }: { readonly least: number; readonly most?: number },
): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most) return value
  const to = most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`
  throw new HoldfastError('INVALID_OPTION', `${name} is a whole number from ${least}${to}. Got ${shown(value)}.`)
}

/** The `next` of a page of runs. Throws INVALID_OPTION. */
export function checkRunCursor(after: unknown, name: string, mark = ''): string {
  if (typeof after === 'string' && isRunId(after.startsWith(mark) ? after.slice(mark.length) : after)) return after
  throw noCursor(after, name)
}

/** The `next` of a page of dead letters: a run and the id of a message. Throws INVALID_OPTION. */
export function checkLetterCursor(after: unknown, name: string): string {
  const isText = typeof after === 'string' && after.length <= longestCursor && isPrintable(after)
  const at = isText ? after.indexOf(' ') : -1
  if (isText && isRunId(after.slice(0, at)) && after.length > at + 1) return after
  throw noCursor(after, name)
}

/** A cursor of dead letters as one word that means nothing to a shell or a terminal: the id of a message is any text. */
export function letterCursorWord(cursor: string): string {
  return encodeURIComponent(cursor).replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`)
}

/** The cursor in such a word. Throws INVALID_OPTION. */
export function checkLetterCursorWord(word: string, name: string): string {
  let cursor: string
  try {
    cursor = decodeURIComponent(word)
  } catch {
    throw noCursor(word, name)
  }
  return checkLetterCursor(cursor, name)
}

/** INVALID_OPTION for a text that no page returned. */
export function noCursor(after: unknown, name: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${name} takes the \`next\` of another page. Got ${shown(after)}.`)
}
