// A map for entries that come and go by the thousand, such as the runs that move in a process.
//
// V8 replaces the table of a Map that has grown or lost entries, and the old table points to its successor. Once one of these
// tables has reached the old generation, all that follow survive every scavenge, and with them all values that they ever
// held: each performed run was copied twice and stayed until the next full collection. Here a table holds cells, and a cell
// is empty when its entry is gone.
//
// V8 does the same harm to object literals whose earlier instances mostly survived a scavenge: from then on it allocates them
// in the old generation, where each keeps the objects that it points to until the next full collection. Instances of classes
// are always young. So every object that is made for each run or commit, and leads to its frame, is a class: a cell here, a
// held run, a barrier, a queued item. Together they reduced a scavenge from 3.9 kB a run to 1.7, which is the memory store's
// own data (Node 20).

class Cell<Value> {
  value: Value | undefined

  constructor(value: Value) {
    this.value = value
  }
}

export class ChurningMap<Value> {
  private readonly cells = new Map<string, Cell<Value>>()

  get size(): number {
    return this.cells.size
  }

  has(key: string): boolean {
    return this.cells.has(key)
  }

  get(key: string): Value | undefined {
    return this.cells.get(key)?.value
  }

  set(key: string, value: Value): void {
    const cell = this.cells.get(key)
    if (cell === undefined) this.cells.set(key, new Cell(value))
    else cell.value = value
  }

  /** Removes an entry. Answers its value, if there was one. */
  take(key: string): Value | undefined {
    const cell = this.cells.get(key)
    if (cell === undefined) return undefined
    const { value } = cell
    cell.value = undefined
    this.cells.delete(key)
    return value
  }

  delete(key: string): boolean {
    return this.take(key) !== undefined
  }

  clear(): void {
    for (const cell of this.cells.values()) cell.value = undefined
    this.cells.clear()
  }

  keys(): IterableIterator<string> {
    return this.cells.keys()
  }

  *values(): Generator<Value> {
    for (const { value } of this.cells.values()) if (value !== undefined) yield value
  }

  *[Symbol.iterator](): Generator<readonly [string, Value]> {
    for (const [key, { value }] of this.cells) if (value !== undefined) yield [key, value]
  }
}
