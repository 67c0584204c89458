// The callers in this process that wait for an entry of a run. A commit of this process is reported to them at once; they find
// one of another process by looking from time to time.

import type { Cancel } from '../core/runtime/ports.ts'

export class RunMoves {
  private readonly watched = new Map<string, Set<() => void>>()

  /** Calls back whenever this process has committed entries of that run. */
  watch(runId: string, listener: () => void): Cancel {
    const listeners = this.watched.get(runId) ?? new Set()
    listeners.add(listener)
    this.watched.set(runId, listeners)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.watched.get(runId) === listeners) this.watched.delete(runId)
    }
  }

  /** A commit of that run is on its way. */
  follow<Committed>(runId: string, committed: Promise<Committed>): Promise<Committed> {
    if (this.watched.has(runId))
      void committed.then(
        () => this.moved(runId),
        () => undefined,
      )
    return committed
  }

  private moved(runId: string): void {
    for (const listener of this.watched.get(runId) ?? []) listener()
  }
}
