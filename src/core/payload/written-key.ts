// Which key somebody needs to read a run. What its holder writes with another key than the run had can be read only by those who
// have that one, too, so the row of the run says so with the same commit.

export class WrittenKey {
  /** What the row of the run says. */
  private known: string | null
  /** The key of entries from that place on, as long as the row does not say so. */
  private next: { readonly id: string; readonly seq: number } | null = null

  constructor(known: string | null) {
    this.known = known
  }

  /** The key that a commit has to tell of; null if there is nothing to tell. */
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
