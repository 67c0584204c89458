// What others leave for a run, in the order in which they left it.

import type { Place } from './codec.ts'

export interface Message {
  /** Client-made, unique within its run. */
  readonly id: string
  readonly runId: string
  readonly name: string
  /** The payload after the codec. */
  readonly data: string
  /** The run's `inbox` after this message: first in, first out. */
  readonly position: number
  readonly at: number
}

/** Where the payload of a message stands: before every entry, because it has no place in the journal yet. */
export function messagePlace(runId: string, id: string): Place {
  return { runId, seq: 0, name: id }
}
