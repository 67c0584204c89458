// While a user's transaction is open in this process, across awaits, any other write of this process would go into it, or
// would take from it the rows that it has read. So other writers wait at a gate, one for all stores of this process that are
// open on one file. It stays shut until the transaction is over, however long that takes.

export class Gate {
  /**
   * Settles when it opens; null while it is open. A caller that has waited checks again: another one may have been faster.
   */
  opened: Promise<void> | null = null
  private holder: object | null = null
  private open: () => void = () => undefined

  /** The transaction that is open is on this connection. */
  isHeldBy(database: object): boolean {
    return this.holder === database
  }

  /** Shuts it for all but this connection's transaction, and gives the way to open it. Call it only while it is open. */
  shut(database: object): () => void {
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
