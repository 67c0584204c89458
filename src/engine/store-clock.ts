// Store time as this process knows it: the last time that the store told, plus a little less than what has passed here
// since. An answer takes time to arrive, and a local clock may run fast; this is never ahead of the store's own clock all the
// same, and nothing that waits for it happens too early. Every answer counts anew, so that it does not fall far behind.

import type { Clock } from '../core/ports.ts'

/**
 * What part of the time that passes here may not have passed in the store. Real clocks differ by a hundredth of this, also
 * while they are being corrected. What waits here is later by as much: 50 ms between two heartbeats of ten seconds.
 */
const doubt = 0.005

export class StoreClock {
  private readonly clock: Clock
  private told: number
  private heardAt: number

  constructor(clock: Clock) {
    this.clock = clock
    this.told = Number.NEGATIVE_INFINITY
    this.heardAt = 0
  }

  /** Takes note of a time that the store has just told. */
  observe(storeNow: number): void {
    this.told = storeNow
    this.heardAt = this.clock.monotonic()
  }

  now(): number {
    return Math.floor(this.told + (1 - doubt) * (this.clock.monotonic() - this.heardAt))
  }
}
