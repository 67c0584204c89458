// Store time as this process knows it: the last time that the store told, plus what has passed here since. An answer takes
// time to arrive, so this is never ahead of the store's own clock, and nothing that waits for it happens too early. Every
// answer counts anew, so that a local clock that runs fast cannot carry it away.

import type { Clock } from '../core/ports.ts'

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
    return Math.floor(this.told + (this.clock.monotonic() - this.heardAt))
  }
}
