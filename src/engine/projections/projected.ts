// How far the projections of this process are, and who waits for that.

import type { Cancel, Clock } from '../../core/runtime/ports.ts'

export class Projected {
  /** Called when someone waits for a projection: entries that are in the feed are to be read at once. */
  readonly onAwaited = new Set<() => void>()
  /** Those that this process moves on, or has by itself in memory. */
  private readonly positions = new Map<string, number>()
  private readonly waiting = new Set<() => void>()

  /** The last position that it has passed, as far as this process knows; null if it is not moved on here. */
  position(name: string): number | null {
    return this.positions.get(name) ?? null
  }

  moved(name: string, position: number): void {
    this.positions.set(name, position)
    for (const wake of this.waiting) wake()
  }

  /** It is no longer moved on here. */
  left(name: string): void {
    this.positions.delete(name)
  }

  /** Until any projection of this process moves, or for so long. */
  pause(clock: Pick<Clock, 'after'>, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        this.waiting.delete(done)
        resolve()
      }
      const cancel: Cancel = clock.after(ms, done)
      this.waiting.add(done)
    })
  }
}
