// The result of a look that found nothing, and its time: as long as no process has written since, the next one need not look.

import type { ClaimRequest, Rescued } from '../../../store.ts'

/** The result of a rescue when there was nothing to do, and its time. */
export interface IdleRescue extends Pick<Rescued, 'next' | 'suspects' | 'now'> {
  readonly mark: string
}

/** The result of a claim when there was nothing to claim, and its time. */
export interface IdleClaim {
  readonly selectors: ClaimRequest['selectors']
  readonly keys: ClaimRequest['keys']
  readonly version: number
  readonly writes: number
  readonly nextDue: number | null
}
