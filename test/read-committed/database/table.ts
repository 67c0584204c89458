// A table whose rows have versions. Who changes a row holds its lock and keeps the new version to itself until it commits;
// all others see the committed ones, each as of its own snapshot. Indexes know a row by every version that it has or
// had, and a lookup sorts out the rest, as in Postgres.

/** A transaction, as far as a row must know: it holds the lock until it ends. */
export interface Owner {
  readonly name: string
  /** A transaction of a user, which executes no plan of ours and may last for any time. */
  readonly isStranger: boolean
  /** Resolves when it has committed or rolled back. */
  readonly ended: Promise<void>
  /** For whose end it waits. */
  readonly waitsFor: Owner | null
}

interface Version<Row> {
  /** Null once it was deleted. */
  readonly row: Row | null
  /** The number of the commit that made it visible. */
  readonly commit: number
}

export interface Index<Row> {
  readonly name: string
  readonly unique: boolean
  /** The key of a row; null if it does not stand in this index. So a unique index may be partial. */
  readonly key: (row: Row) => string | null
}

/** One row and its versions. */
export class Tuple<Row> {
  /** What its owner has made of it; null if nothing, and of a row null if it was deleted. */
  draft: { readonly row: Row | null } | null = null
  owner: Owner | null
  /** Oldest first. None if its insert is not committed yet. */
  private versions: readonly Version<Row>[] = []

  constructor(owner: Owner) {
    this.owner = owner
  }

  /** What a transaction sees whose statement began after that commit. */
  seenBy(reader: Owner, snapshot: number): Row | null {
    if (this.owner === reader && this.draft !== null) return this.draft.row
    return this.versions.findLast(({ commit }) => commit <= snapshot)?.row ?? null
  }

  /** The newest version that is committed, or that this transaction made. */
  newestFor(reader: Owner): Row | null {
    return this.seenBy(reader, Number.POSITIVE_INFINITY)
  }

  /** Every version of it, committed or not. */
  rows(): readonly Row[] {
    const versions: readonly { readonly row: Row | null }[] = this.versions
    const all = this.draft === null ? versions : [...versions, this.draft]
    return all.flatMap(({ row }) => (row === null ? [] : [row]))
  }

  /** Makes the draft visible. Versions that no statement can see any more are forgotten; false if nothing is left. */
  publish(commit: number, oldestSnapshot: number): boolean {
    if (this.draft === null) return true
    const first = this.versions.findLastIndex((version) => version.commit <= oldestSnapshot)
    this.versions = [...this.versions.slice(Math.max(first, 0)), { row: this.draft.row, commit }]
    this.draft = null
    if (oldestSnapshot < commit || this.versions.at(-1)?.row !== null) return true
    this.versions = []
    return false
  }

  /** Forgets the draft; false if nothing is left of the row. */
  discard(): boolean {
    this.draft = null
    return this.versions.length > 0
  }
}

export class Table<Row> {
  readonly name: string
  readonly unique: readonly Index<Row>[]
  private readonly indexes = new Map<string, Index<Row>>()
  private readonly places = new Map<string, Map<string, Set<Tuple<Row>>>>()
  private readonly tuples = new Set<Tuple<Row>>()

  constructor(name: string, indexes: readonly Index<Row>[]) {
    this.name = name
    this.unique = indexes.filter(({ unique }) => unique)
    for (const index of indexes) {
      this.indexes.set(index.name, index)
      this.places.set(index.name, new Map())
    }
  }

  index(name: string): Index<Row> {
    const index = this.indexes.get(name)
    if (index === undefined) throw new TypeError(`${this.name} has no index ${name}`)
    return index
  }

  /** Every row of the table, in the order of their inserts. */
  all(): Iterable<Tuple<Row>> {
    return this.tuples
  }

  /** Rows of which some version has this key. */
  having(index: Index<Row>, key: string): readonly Tuple<Row>[] {
    const place = this.places.get(index.name)?.get(key)
    if (place === undefined) return []
    for (const tuple of place) if (!tuple.rows().some((row) => index.key(row) === key)) place.delete(tuple)
    return [...place]
  }

  /** Puts a new row in, which nobody but its owner sees. */
  add(owner: Owner): Tuple<Row> {
    const tuple = new Tuple<Row>(owner)
    this.tuples.add(tuple)
    return tuple
  }

  /** Keeps a new version of a row for its owner. */
  write(tuple: Tuple<Row>, row: Row): void {
    tuple.draft = { row }
    for (const index of this.indexes.values()) {
      const key = index.key(row)
      if (key === null) continue
      const keys = this.places.get(index.name)
      const place = keys?.get(key)
      if (place === undefined) keys?.set(key, new Set([tuple]))
      else place.add(tuple)
    }
  }

  /** A row that its owner deletes: it is gone for all others once that is committed. */
  erase(tuple: Tuple<Row>): void {
    tuple.draft = { row: null }
  }

  remove(tuple: Tuple<Row>): void {
    this.tuples.delete(tuple)
  }
}
