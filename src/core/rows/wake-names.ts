// The names that a parked run wants of its mailbox, as a text on its row. The text begins with the token under which the run
// was parked: a claim makes it void by itself, and so does a process that is older than this column and parks without writing
// it.

import { areTexts, membersOf, parsedJson } from '../text/json-form.ts'

/** More names than this, or longer ones, are not listed: then any message wakes the run. */
const mostNames = 32
/** A row stays on its page up to here. */
const mostCharacters = 1_500

/** Names as they may stand on a row; null if they are too many. */
export function listed(names: readonly string[] | null): readonly string[] | null {
  if (names === null || names.length > mostNames) return null
  let characters = 0
  for (const name of names) characters += name.length
  return characters > mostCharacters ? null : names
}

/** `{"token":7,"names":["approved"]}`; null if any message wakes the run. */
export function wakeNamesText(names: readonly string[] | null | undefined, token: number): string | null {
  return names === null || names === undefined ? null : `{"token":${token},"names":${JSON.stringify(names)}}`
}

/** The names in that text for a run with this token. */
export function wakeNamesIn(text: string | null | undefined, token: number): readonly string[] | null {
  if (text === null || text === undefined || !text.startsWith(`{"token":${token},`)) return null
  const { names } = membersOf(parsedJson(text))
  // A text that the engine cannot have written is ignored: then any message wakes the run.
  return areTexts(names) ? names : null
}
