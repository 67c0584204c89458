// The pauses of a worker that found only locked rows: other claimers were quicker, or foreign transactions hold the locks, for
// any length of time. Each such request in a row is followed by a longer pause, with jitter. Nothing reports the end of a lock,
// so a run may be found as late as the longest pause after it.

import { createBackoffDelays, type BackoffBounds } from '../core/runtime/backoff.ts'
import type { Random } from '../core/runtime/ports.ts'

export class Contention {
  private readonly random: Random
  private readonly bounds: BackoffBounds
  private next: (() => number) | null = null

  /** @param bounds of the pauses. By default those of claims: other claimers are done in a few milliseconds. */
  constructor(random: Random, bounds: BackoffBounds = { firstMs: 5, longestMs: 500 }) {
    this.random = random
    this.bounds = bounds
  }

  /** The last request found only locked rows. */
  get isMet(): boolean {
    return this.next !== null
  }

  /** A request found only locked rows: returns for how long to pause before the next one. */
  met(): number {
    this.next ??= createBackoffDelays(this.random, this.bounds)
    return this.next()
  }

  /** A request got rows, or there were none. */
  over(): void {
    this.next = null
  }
}
