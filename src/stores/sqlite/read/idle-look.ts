// What a look found that found nothing, and when: as long as nothing was written since, the next one need not look.

import type { ClaimRequest, Rescued } from '../../../store.ts'

/** What a rescue found when there was nothing to do, and when it found that. */
export interface IdleRescue extends Pick<Rescued, 'next' | 'suspects' | 'now'> {
  readonly mark: string
}

/** What a claim found when there was nothing to claim, and when it found that. */
export interface IdleClaim {
  readonly selectors: ClaimRequest['selectors']
  readonly keys: ClaimRequest['keys']
  readonly version: number
  readonly writes: number
  readonly nextDue: number | null
}
