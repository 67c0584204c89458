// How a worker asks again for what it could not have because others hold its rows: claimers who were quicker, or strangers for as
// long as they like. Each question in a row that meets nothing else is followed by a longer pause, with jitter. Nothing tells
// when a lock ends, so the longest pause is how late whoever waited for one may be.

import { createBackoffDelays, type BackoffBounds } from '../../core/runtime/backoff.ts'
import type { Random } from '../../core/runtime/ports.ts'

export class Contention {
  private readonly random: Random
  private readonly bounds: BackoffBounds
  private next: (() => number) | null = null

  /** @param bounds of the pauses. By default those of claims: claimers who were quicker are done in a few milliseconds. */
  constructor(random: Random, bounds: BackoffBounds = { firstMs: 5, longestMs: 500 }) {
    this.random = random
    this.bounds = bounds
  }

  /** The last question met nothing but what others hold. */
  get isMet(): boolean {
    return this.next !== null
  }

  /** A question met nothing else: returns for how long to pause before the next one. */
  met(): number {
    this.next ??= createBackoffDelays(this.random, this.bounds)
    return this.next()
  }

  /** A question got something, or there was nothing to get. */
  over(): void {
    this.next = null
  }
}
