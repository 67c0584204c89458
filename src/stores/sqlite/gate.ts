// SQLite has one writer at a time, and waits for it without letting anything else of this process run. While a user's
// transaction is open here, across awaits, whoever else of this process wants to write would wait for it in vain, or would
// write into it. So they wait in front of a gate instead, one for all stores of this process that are open on one file.

import { HoldfastError } from '../../core/error.ts'

export class Gate {
  /** Settles when it opens; null while it is open. Whoever has waited looks again: somebody else may have been faster. */
  opened: Promise<void> | null = null
  private holder: object | null = null
  private open: () => void = () => undefined

  /** Does it at once if the gate is open, else when it is. */
  through<Answer>(work: () => Answer): Answer | Promise<Answer> {
    return this.opened === null ? work() : this.later(work)
  }

  private async later<Answer>(work: () => Answer): Promise<Answer> {
    while (this.opened !== null) await this.opened
    return work()
  }

  /** The transaction that is open is on this connection. */
  isHeldBy(database: object): boolean {
    return this.holder === database
  }

  /** Waits until nobody else's transaction is open, and closes the gate for all but this connection's. */
  async close(database: object): Promise<() => void> {
    while (this.opened !== null) await this.opened
    return this.closeNow(database)
  }

  /** The same if it is open, which the caller has made sure of. */
  closeNow(database: object): () => void {
    this.holder = database
    this.opened = new Promise((resolve) => (this.open = resolve))
    return () => {
      if (this.holder !== database) return
      this.holder = null
      this.opened = null
      this.open()
    }
  }
}

const gates = new Map<unknown, { readonly gate: Gate; stores: number }>()

/** The gate of a file, or of a connection in memory, for as long as some store of this process has it open. */
export function shareGate(file: string | object): { readonly gate: Gate; readonly letGo: () => void } {
  const shared = gates.get(file) ?? { gate: new Gate(), stores: 0 }
  gates.set(file, shared)
  shared.stores += 1
  let isHeld = true
  return {
    gate: shared.gate,
    letGo() {
      if (isHeld) shared.stores -= 1
      isHeld = false
      if (shared.stores === 0 && gates.get(file) === shared) gates.delete(file)
    },
  }
}

/** Settles like `work`, or is rejected after that time; what `work` does later is ignored. */
export function bounded<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const message =
        `A transaction was open for ${Math.round(ms)} ms, the storage timeout, and was rolled back: SQLite has one writer at ` +
        'a time, and everyone else was waiting. Inside it, reach Holdfast only through holdfast.using(tx), and do slow ' +
        'work before it.'
      reject(new HoldfastError('STORE_UNAVAILABLE', message))
    }, ms)
    void work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
