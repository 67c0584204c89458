// The changes of a fold that may have to be taken back, because the store has not committed them yet. While nothing is
// pending, nothing is logged: a long journal is folded without one.

export class UndoLog {
  private readonly steps: (() => void)[] = []
  /** Changes are logged from here on, until it is cleared. */
  isOpen = false

  /** How many changes are logged: a place to go back to. */
  get length(): number {
    return this.steps.length
  }

  push(undo: () => void): void {
    if (this.isOpen) this.steps.push(undo)
  }

  /** Takes back all changes after that place, the last one first. */
  back(length: number): void {
    while (this.steps.length > length) this.steps.pop()?.()
  }

  /** Forgets the first changes: they are durable. */
  forget(count: number): void {
    this.steps.splice(0, count)
  }

  /** A change of a map. Null removes the key. */
  set<Key, Value>(map: Map<Key, Value>, key: Key, value: Value | null): void {
    if (this.isOpen) {
      const [isThere, before] = [map.has(key), map.get(key)]
      this.push(() => {
        if (isThere) map.set(key, before as Value)
        else map.delete(key)
      })
    }
    if (value === null) map.delete(key)
    else map.set(key, value)
  }
}
