// Why a run is paused, for people: on one line where it stands among others, and whole where the run is shown alone. A note may
// come from anybody who can write to the store, so each of its lines is made visible and stands indented under ours.

import type { PauseView } from '../../client/read/run-view.ts'
import { visible } from '../../core/text/printable.ts'
import { pointInTime } from './text.ts'

/** The lines of a text, each safe to print. */
export function visibleLines(text: string): readonly string[] {
  return text.split(/\r?\n/).map(visible)
}

/** `operator: the customer called`; of a drift, what its diff names. Safe to print. */
export function pauseSummary(reason: string, note: string | null): string {
  if (note === null || note === '') return visible(reason)
  const lines = visibleLines(note)
  const diff = lines.filter((line) => /^[-+] /.test(line)).map((line) => line.slice(2))
  const text = reason === 'drift' && diff.length > 0 ? diff.join('; ') : lines.join(' ').trimEnd()
  return `${visible(reason)}: ${text}`
}

/** Why and since when, and under it the note or the diff as it was written: nothing of it is cut. Safe to print. */
export function pauseLines({ reason, note, at }: PauseView): readonly string[] {
  const since = `${visible(reason)}, since ${pointInTime(at)}`
  return note === null || note === '' ? [since] : [since, ...visibleLines(note)]
}
