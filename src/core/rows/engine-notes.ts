// The notes of pauses that the engine itself makes or takes back. It may have no key then, so they are plain text, and anyone
// with write access to the database can change them. Where a codec authenticates the notes of operators, these notes are not
// shown as they are stored, but made anew from the other fields of their entries: a forged text is never shown.

import { messageOf } from '../errors/error.ts'
import { capitalized } from '../text/capitalized.ts'
import type { Entry, NoteMeta, PausedMeta, Unreadable } from '../model/entry.ts'
import { quotedText } from '../text/printable.ts'

/** The note of a run that was taken from this many holders. */
export function crashNote(crashes: number): string {
  return (
    `Its processes died, or fell silent, ${crashes} times in a row, at last while they performed nothing else. ` +
    'Look for what ends them: memory, a native module, process.exit, a loop that never yields. Then resume the run.'
  )
}

/** The note of a run that was taken from a process that had only fallen silent. */
export const acquittalNote =
  'A process that was counted as dead is alive: it stood still or could not reach the store. That was no crash of this run.'

/** The note of a run that needs a payload which cannot be read. */
export function unreadableNote({ entry, key, why, damaged }: Omit<Unreadable, 'reason' | 'note'>): string {
  const advice =
    key === null
      ? 'Configure the codec that wrote it, or repair the entry with resume({ amend })'
      : `Give the workers the key ${quotedText(key)}`
  const text =
    damaged === undefined
      ? `The payload of ${shownEntry(entry)} cannot be read: ${why}. ${advice}`
      : `${capitalized(damaged)} is damaged: ${why}. Put its row back as it was`
  return `${text}, then resume the run. Nothing of it was repeated or undone.`
}

/** The engine's note on a pause of its own, or on the end of one; undefined if an operator paused or resumed the run. */
export function engineNote(meta: PausedMeta | NoteMeta): string | undefined {
  if (!('reason' in meta)) return meta.note === acquittalNote ? acquittalNote : undefined
  if (meta.reason === 'unreadable') return unreadableNote(meta)
  if (meta.reason !== 'crashes') return undefined
  const [, crashes = '0'] = /\b(\d{1,6}) times in a row\b/.exec(meta.note ?? '') ?? []
  return crashNote(Number(crashes))
}

/** The run that a line of a log is about. */
export interface LoggedRun {
  readonly id: string
  readonly type: string
}

/** How a line of a log names a run: by its id and its type. */
export function runName({ id, type }: LoggedRun): string {
  return `run ${id} of ${quotedText(type)}`
}

/** The line of a log about a run, which begins with its name. */
export function runLine({ id, type }: LoggedRun, text: string): string {
  return `Run ${id} of ${quotedText(type)} ${text}`
}

/** The line of a log about a run that the engine pauses: which run, of what type, for what reason, and the note. */
export function pausedLine(run: LoggedRun, reason: PausedMeta['reason'], note: string): string {
  return runLine(run, `is paused (${reason}): ${note}`)
}

/** The line of a log about a run that has failed for good: an operator learns of it even if no code waits for the result. */
export function failedLine(run: LoggedRun, error: unknown): string {
  return runLine(run, `failed: ${shortMessage(error)}`)
}

/** The most characters of an error in a line of a log: an error may quote a whole document. */
const longestMessage = 2_000

/** The message of an error, as far as a line of a log has room for it. */
export function shortMessage(error: unknown): string {
  const message = messageOf(error)
  return message.length > longestMessage ? `${message.slice(0, longestMessage)}…` : message
}

/** An entry in words. */
export function shownEntry({ seq, name }: Pick<Entry, 'name' | 'seq'>): string {
  return `entry ${seq}${name === null ? '' : ` (${quotedText(name)})`}`
}
