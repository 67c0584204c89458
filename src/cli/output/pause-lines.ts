// The reason of a pause as text: one line in a list, and whole where the run is shown alone. Any account that can write to
// the store may have written a note, so each of its lines is escaped and indented under ours.

import type { PauseView } from '../../client/read/run-view.ts'
import { visible } from '../../core/text/printable.ts'
import { pointInTime } from './text.ts'

/** The lines of a text, each safe to print. */
export function visibleLines(text: string): readonly string[] {
  return text.split(/\r?\n/).map(visible)
}

/** `operator: the customer called`; of a drift, the names in its diff. Safe to print. */
export function pauseSummary(reason: string, note: string | null): string {
  if (note === null || note === '') return visible(reason)
  const lines = visibleLines(note)
  const diff = lines.filter((line) => /^[-+] /.test(line)).map((line) => line.slice(2))
  const text = reason === 'drift' && diff.length > 0 ? diff.join('; ') : lines.join(' ').trimEnd()
  return `${visible(reason)}: ${text}`
}

/** The reason and the time, and under it the whole note or diff. Safe to print. */
export function pauseLines({ reason, note, at }: PauseView): readonly string[] {
  const since = `${visible(reason)}, since ${pointInTime(at)}`
  return note === null || note === '' ? [since] : [since, ...visibleLines(note)]
}
