// How the body, and the attempts that are running, are aborted.

import { LazyAbortSignal } from '../../core/runtime/lazy-abort-signal.ts'
import type { Settler } from '../replay/settler.ts'

export class BodyStop {
  private readonly settler: Settler
  private signal: LazyAbortSignal | null = null

  constructor(settler: Settler) {
    this.settler = settler
  }

  get abortSignal(): AbortSignal {
    this.signal ??= new LazyAbortSignal()
    return this.signal.abortSignal
  }

  /** Nothing is taken from the attempts any more. */
  stop(reason: () => unknown): void {
    for (const { attempt } of this.settler.steps()) attempt?.abort(reason())
    if (this.signal !== null) this.signal.signalAbort(reason())
  }

  /** Results of attempts under way are still recorded. */
  abortBody(reason: unknown): void {
    for (const { attempt } of this.settler.steps()) attempt?.signalAbort(reason)
    this.signal ??= new LazyAbortSignal()
    this.signal.signalAbort(reason)
  }
}
