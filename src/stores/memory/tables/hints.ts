// Hints for those who listen. They come once the present call has its answer, so that nothing that a listener does or throws
// gets into it.

import type { Hint } from '../../../store.ts'

export class Hints {
  private readonly listeners = new Set<(hint: Hint) => void>()
  private undelivered: Hint[] = []

  listen(onHint: (hint: Hint) => void): () => void {
    this.listeners.add(onHint)
    return () => this.listeners.delete(onHint)
  }

  close(): void {
    this.listeners.clear()
  }

  give(hint: Hint): void {
    if (this.listeners.size === 0) return
    if (this.undelivered.push(hint) === 1) void Promise.resolve().then(this.notifyListeners)
  }

  private readonly notifyListeners = (): void => {
    const hints = this.undelivered
    this.undelivered = []
    for (const hint of hints) for (const listener of this.listeners) listener(hint)
  }
}
