// When a payload of the journal cannot be read here: its key is missing, or the text is damaged. That says nothing about the
// run itself, so it is paused as it is: no step is repeated, nothing fails, nothing is undone or given up. Once the key is
// back, an operator resumes it. The messages here never show content.

import { unreadableNote } from '../../core/rows/engine-notes.ts'
import type { Unreadable } from '../../core/model/entry.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { visible } from '../../core/text/printable.ts'
import type { RecordedPlace } from './history.ts'

/** How long a run that has something to undo rests before a worker tries again to read it: longer each time. */
const firstMs = 5_000
const longestMs = 10 * 60_000

export function describeUnreadable({ details, message }: HoldfastError, { seq, name }: RecordedPlace): Unreadable {
  const { key, reason, damaged } = details
  const text = {
    entry: { seq, name },
    key: typeof key === 'string' ? key : null,
    why: typeof reason === 'string' ? reason : message,
    ...(typeof damaged === 'string' ? { damaged } : {}),
  }
  return { reason: 'unreadable', ...text, note: unreadableNote(text) }
}

/** Why steps of a run cannot be undone now, though they will be. */
export function undoIsAway(runId: string, steps: readonly string[], isResource: boolean): HoldfastError {
  const what = isResource ? 'a resource that its body needs could not be acquired' : 'its body got no answer in time'
  const list = steps.length === 0 ? '' : ` (${steps.map((step) => visible(step)).join(', ')})`
  const message = `The steps of run ${runId}${list} cannot be undone yet: ${what}. The undo is tried again later.`
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { runId, steps } })
}

export function lookAgainMs(attempt: number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 20))
}
