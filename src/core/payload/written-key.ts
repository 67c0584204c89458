// Which key is needed to read a run. Entries that its holder writes with another key than the run had can be read only with
// that key, too, so the row of the run names it with the same commit.

export class WrittenKey {
  /** The key on the row of the run. */
  private known: string | null
  /** The key of entries from that place on, as long as the row does not say so. */
  private next: { readonly id: string; readonly seq: number } | null = null

  constructor(known: string | null) {
    this.known = known
  }

  /** The key that a commit has to name; null if there is none. */
  get changed(): string | null {
    return this.next?.id ?? null
  }

  /** An entry was written with that key, or with none. */
  note(key: string | null, seq: number): void {
    if (key !== null && key !== this.known && key !== this.next?.id) this.next = { id: key, seq }
  }

  /** Entries up to that place are durable. */
  settle(seq: number): void {
    if (this.next === null || this.next.seq > seq) return
    this.known = this.next.id
    this.next = null
  }
}
