// How far the projections of this process are, and who waits for that.

import type { FailedEvent } from '../../store.ts'
import type { Cancel, Clock } from '../../core/runtime/ports.ts'

export class Projected {
  /** Called when someone waits for a projection: entries that are in the feed are to be read at once. */
  readonly onAwaited = new Set<() => void>()
  /** Those that this process moves on, or has by itself in memory. */
  private readonly positions = new Map<string, number>()
  /** Those that this process projects, or stands by to. */
  private readonly here = new Set<string>()
  /** Those in memory that are parked: the store does not know of them. */
  private readonly parked = new Map<string, FailedEvent>()
  private readonly waiting = new Set<() => void>()

  /** The last position that it has passed, as far as this process knows; null if it is not moved on here. */
  position(name: string): number | null {
    return this.positions.get(name) ?? null
  }

  /** Whether this process projects it, or stands by to: the store may not know of it yet. */
  isHere(name: string): boolean {
    return this.here.has(name)
  }

  joined(name: string): void {
    this.here.add(name)
  }

  gone(name: string): void {
    this.here.delete(name)
  }

  moved(name: string, position: number): void {
    this.positions.set(name, position)
    for (const wake of this.waiting) wake()
  }

  /** The event at which one in memory is parked; null if it is not. */
  failure(name: string): FailedEvent | null {
    return this.parked.get(name) ?? null
  }

  /** One in memory is parked at that event, or goes on. */
  failedAt(name: string, failure: FailedEvent | null): void {
    if (failure === null) this.parked.delete(name)
    else this.parked.set(name, failure)
  }

  /** It is no longer moved on here. */
  left(name: string): void {
    this.positions.delete(name)
    this.parked.delete(name)
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
