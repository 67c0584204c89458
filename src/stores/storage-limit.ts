// How long a call of a store may take: its storage timeout, or less while a caller gives calls up sooner.

export class StorageLimit {
  private readonly storageMs: number
  private readonly limits = new Set<{ readonly ms: number }>()

  constructor(storageMs: number) {
    this.storageMs = storageMs
  }

  get ms(): number {
    return Math.min(this.storageMs, this.leastMs)
  }

  /** The shortest time that a caller waits for an answer. */
  get leastMs(): number {
    let least = Number.POSITIVE_INFINITY
    for (const { ms } of this.limits) least = Math.min(least, Math.max(1, ms))
    return least
  }

  /** Bounds all calls by that time, until the returned function is called. */
  limit(ms: number): () => void {
    const limit = { ms }
    this.limits.add(limit)
    return () => void this.limits.delete(limit)
  }
}
