// How the body, and the attempts that are running, are told to stop.

import { StopSignal } from '../core/stop-signal.ts'
import type { Settler } from './settler.ts'

export class Stopping {
  private readonly settler: Settler
  private signal: StopSignal | null = null

  constructor(settler: Settler) {
    this.settler = settler
  }

  get abortSignal(): AbortSignal {
    this.signal ??= new StopSignal()
    return this.signal.abortSignal
  }

  /** Nothing is taken from the attempts any more. */
  stop(reason: () => unknown): void {
    for (const { attempt } of this.settler.steps()) attempt?.abort(reason())
    if (this.signal !== null) this.signal.tell(reason())
  }

  /** What the attempts give back still counts. */
  tell(reason: unknown): void {
    for (const { attempt } of this.settler.steps()) attempt?.tell(reason)
    this.signal ??= new StopSignal()
    this.signal.tell(reason)
  }
}
