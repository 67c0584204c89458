// How a run leaves the process that holds it.

import type { Due } from '../model/due.ts'
import type { Continuation, NextStatus } from '../model/transition.ts'

/** How a run leaves this process: for another status, or to begin anew. */
export interface Exit {
  readonly status: Exclude<NextStatus, 'waiting'> | null
  readonly due: Due | null
  readonly continues: Continuation | null
  /** The mailbox is known to be empty when this many messages had arrived; undefined if that is not known. */
  readonly emptyAt?: number | undefined
  /** It applies a control request, and is void if that request was withdrawn. */
  readonly applies?: 'pause' | null
}
