// The waits that a body has made. At the end of the turn in which it was made, each begins that nothing else has begun.

import type { WaitCall } from '../frame/body-call.ts'
import { Wait } from './wait.ts'

const least = 16

export class MadeWaits {
  /** Those of this turn. */
  private waits: Wait<unknown>[] = []
  /** Waits that have begun without being awaited. */
  private begun: WaitCall[] = []
  /** How many there were when those that the body awaits were last left out. */
  private pruned = least

  add(wait: Wait<unknown>): void {
    this.waits.push(wait)
  }

  /** Some of this turn have not begun. */
  get hasNew(): boolean {
    return this.waits.length > 0
  }

  begin(): void {
    if (this.waits.length === 0) return
    const { waits } = this
    this.waits = []
    for (const wait of waits) {
      const call = Wait.begin(wait)
      if (call !== null) this.begun.push(call)
    }
    if (this.begun.length >= 2 * this.pruned) this.pruned = Math.max(least, this.unawaited.length)
  }

  /** Waits that the body has not awaited so far. */
  get unawaited(): readonly WaitCall[] {
    this.begun = this.begun.filter(({ isAwaited }) => !isAwaited)
    return this.begun
  }
}
