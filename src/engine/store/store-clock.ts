// Store time as this process knows it: the last time that the store answered with, plus a little less than the time that has
// passed here since. An answer takes time to arrive, and a local clock may run fast; this estimate is never ahead of the
// store's own clock all the same, so no wait on it ends too early. Every answer is a new basis, so that it does not fall far
// behind.
//
// It never steps back. Of two answers the older may arrive last: then this clock stands still until the time that follows from
// it has caught up, which is no later than the next answer.

import type { Clock } from '../../core/runtime/ports.ts'

/**
 * The fraction of the time that passes here which may not have passed in the store. Real clocks differ by a hundredth of
 * this, also while they are being corrected. Waits here are later by as much: 50 ms between two heartbeats of ten seconds.
 */
const usualDrift = 0.005

/**
 * No answer is this old when it arrives. A store whose time is so far back was set back itself, and has to be followed: for a
 * clock that stood still, all times that the store counts from now on would be due too early.
 */
const setBackMs = 60_000

export class StoreClock {
  private readonly clock: Clock
  private storeTime: number
  private heardAt: number
  /** The latest time that was returned to a caller. */
  private given: number

  constructor(clock: Clock) {
    this.clock = clock
    this.storeTime = Number.NEGATIVE_INFINITY
    this.heardAt = 0
    this.given = Number.NEGATIVE_INFINITY
  }

  /** Takes note of a time that the store has just reported. */
  observe(storeNow: number): void {
    // The first answer with a time is the better basis, unless this clock is past it by now. A store in this process gives hundreds
    // of answers in a millisecond, and to read the clock at each was 1 % of a step.
    if (storeNow === this.storeTime && this.given <= storeNow) return
    this.storeTime = storeNow
    this.heardAt = this.clock.monotonic()
    if (storeNow < this.given - setBackMs) this.given = storeNow
  }

  now(): number {
    const { drift = usualDrift } = this.clock
    const estimate = Math.floor(this.storeTime + (1 - drift) * (this.clock.monotonic() - this.heardAt))
    if (estimate > this.given) this.given = estimate
    return this.given
  }
}
