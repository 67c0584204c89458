// How much of the ends of runs one transaction reads and settles.

import { defaultPageLimits, withEachEnd } from '../../../core/model/chore.ts'
import type { LockRequest } from './lock-request.ts'

/** How many messages of a run are settled, and how many of the runs that wait on it are notified. */
export interface AtOnce {
  readonly messages: number
  readonly waits: number
}

/** A transaction in which many runs end does less for each, so that all of them together are bounded. */
export function atOnce({ chore, ends }: LockRequest): AtOnce {
  if (chore?.kind === 'messages') return { messages: defaultPageLimits.messages, waits: 0 }
  if (chore?.kind === 'end') return { messages: 0, waits: defaultPageLimits.watchers }
  const each = withEachEnd(defaultPageLimits, ends.size)
  return { messages: each, waits: each }
}
