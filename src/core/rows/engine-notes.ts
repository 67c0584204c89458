// The notes of pauses that the engine itself makes or takes back. It may have no key then, so they are plain text, and whoever can write to the
// database can change them. Where a codec vouches for the notes of people, these are not shown as they stand, but made anew from
// what else their entries say: nobody can put a text of their own there.

import type { Entry, NoteMeta, PausedMeta, Unreadable } from '../model/entry.ts'

/** Of a run that was taken from so many holders. */
export function crashNote(crashes: number): string {
  return (
    `Its processes died, or fell silent, ${crashes} times in a row, at last while they performed nothing else. ` +
    'Look for what ends them: memory, a native module, process.exit, a loop that never yields. Then resume the run.'
  )
}

/** Of a run that was taken from a process that had only fallen silent. */
export const acquittalNote =
  'A process that was counted as dead is alive: it stood still or could not reach the store. That was no crash of this run.'

/** Of a run that needs what cannot be read. */
export function unreadableNote({ entry, key, why, damaged }: Omit<Unreadable, 'reason' | 'note'>): string {
  const advice =
    key === null
      ? 'Configure the codec that wrote it, or repair the entry with resume({ amend })'
      : `Give the workers the key ${JSON.stringify(key)}`
  const text =
    damaged === undefined
      ? `The payload of ${shownEntry(entry)} cannot be read: ${why}. ${advice}`
      : `${capitalized(damaged)} is damaged: ${why}. Put its row back as it was`
  return `${text}, then resume the run. Nothing of it was repeated or undone.`
}

/** What the engine said of a pause of its own, or of its end; undefined if somebody else paused the run or let it go on. */
export function engineNote(meta: PausedMeta | NoteMeta): string | undefined {
  if (!('reason' in meta)) return meta.note === acquittalNote ? acquittalNote : undefined
  if (meta.reason === 'unreadable') return unreadableNote(meta)
  if (meta.reason !== 'crashes') return undefined
  const [, crashes = '0'] = /\b(\d{1,6}) times in a row\b/.exec(meta.note ?? '') ?? []
  return crashNote(Number(crashes))
}

/** The line of a log about a run that the engine pauses: which run, of what type, for what reason, and the note. */
export function pausedLine(
  { id, type }: { readonly id: string; readonly type: string },
  reason: PausedMeta['reason'],
  note: string,
): string {
  return `Run ${id} of "${type}" is paused (${reason}): ${note}`
}

/** An entry in words. */
export function shownEntry({ seq, name }: Pick<Entry, 'name' | 'seq'>): string {
  return `entry ${seq}${name === null ? '' : ` (${JSON.stringify(name)})`}`
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
