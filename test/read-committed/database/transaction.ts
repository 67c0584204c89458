// One transaction at READ COMMITTED, as Postgres executes it. Each call is one statement.
//
//   * A statement sees what was committed when it began, and what its own transaction did; not what is committed while it
//     waits for a lock.
//   * Who locks or changes a row waits for the transaction that has it. Afterwards it takes the newest version, but only if
//     that still fits the statement (EvalPlanQual): the row is judged anew, everything else as of the old snapshot.
//   * An insert that meets a key waits for the transaction that is about to write or free that key, and then finds a row that its
//     own statement cannot see.
//   * A statement that takes many rows takes one after the other, and others come in between.
//   * Locks are held until the end. Two that wait for each other are found at once, and the second gets 40P01.
//   * Over several machines an end reaches one after the other: what was written on one is visible before the rest is.
//
// What is left out because no plan needs it: shared locks, savepoints, and a statement that sees its own writes.

import { SqlError } from './sql-error.ts'
import type { Index, Owner, Table, Tuple } from './table.ts'

export interface Query<Row> {
  /** Only rows with one of these keys in this index. */
  readonly at?: readonly [index: string, keys: readonly string[]]
  /** `snapshot` is that of the statement, however long it has waited. */
  readonly where?: (row: Row, snapshot: Snapshot) => boolean
  readonly order?: (a: Row, b: Row) => number
  readonly limit?: number
}

export interface LockOptions<Row> {
  /** Passes over rows that another transaction has, instead of waiting. */
  readonly skipLocked?: boolean
  /**
   * Passes over those of these rows that a stranger has, or a transaction that waits for one. Postgres finds that out by waiting for a
   * moment: nobody else has a row for longer.
   */
  readonly passesStrangers?: (row: Row) => boolean
}

/** What all transactions of a database share. */
export interface Shared {
  /** The number of the last commit. */
  commits: number
  readonly open: Set<Transaction>
  /** On which machine a row is; 0 if there is only one. */
  readonly machineOf: (table: string, row: unknown) => number
  /** Snapshots of the statements that are under way. */
  readonly snapshots: Set<Snapshot>
  /** Called with every key that a transaction takes or waits for, and with null of every end: for tests that look for who met. */
  witness: ((key: string | null) => void) | null
}

interface Found<Row> {
  readonly tuple: Tuple<Row>
  readonly row: Row
}

/** Another row that has a key which must be unique. */
interface Rival<Row> {
  readonly tuple: Tuple<Row>
  readonly index: Index<Row>
}

/** A row whose lock a transaction has. */
interface Held {
  readonly machine: number
  /** Gives the lock back, with the number of the commit or without. */
  readonly settle: (commit: number | null) => void
}

/** What one statement sees. */
export class Snapshot {
  readonly commit: number
  private readonly reader: Owner

  constructor(reader: Owner, commit: number) {
    this.reader = reader
    this.commit = commit
  }

  select<Row>(table: Table<Row>, query: Query<Row>): readonly Row[] {
    return this.find(table, query)
      .slice(0, query.limit)
      .map(({ row }) => row)
  }

  find<Row>(table: Table<Row>, query: Query<Row>, fits = this.condition(table, query)): readonly Found<Row>[] {
    const found: Found<Row>[] = []
    for (const tuple of candidates(table, query)) {
      const row = tuple.seenBy(this.reader, this.commit)
      if (row !== null && fits(row)) found.push({ tuple, row })
    }
    const { order } = query
    return order === undefined ? found : found.sort((a, b) => order(a.row, b.row))
  }

  /** Whether a row, of whatever version, is one that the statement means. */
  condition<Row>(table: Table<Row>, { at, where }: Query<Row>): (row: Row) => boolean {
    const fits = (row: Row): boolean => where === undefined || where(row, this)
    if (at === undefined) return fits
    const index = table.index(at[0])
    const keys = new Set<string | null>(at[1])
    return (row) => keys.has(index.key(row)) && fits(row)
  }
}

export class Transaction implements Owner {
  readonly name: string
  readonly isStranger: boolean
  readonly ended: Promise<void>
  waitsFor: Owner | null = null
  /** Awaited between two rows of a statement: there, too, others come in between. */
  between: () => Promise<void> = async () => undefined
  private readonly shared: Shared
  private release!: () => void
  /** What it holds the lock of, and how to give that back. */
  private readonly held = new Map<unknown, Held>()
  private readonly views: Snapshot[] = []

  constructor(name: string, shared: Shared, isStranger = false) {
    this.name = name
    this.isStranger = isStranger
    this.shared = shared
    this.ended = new Promise((resolve) => (this.release = resolve))
    shared.open.add(this)
  }

  /** `select …` */
  select<Row>(table: Table<Row>, query: Query<Row>): readonly Row[] {
    return new Snapshot(this, this.shared.commits).select(table, query)
  }

  /** What a statement of many selects sees, to be read until the end of the transaction. */
  view(): Snapshot {
    const snapshot = new Snapshot(this, this.shared.commits)
    this.shared.snapshots.add(snapshot)
    this.views.push(snapshot)
    return snapshot
  }

  /** `select … for no key update [skip locked]`: the newest versions of the rows that it locked. */
  lock<Row>(table: Table<Row>, query: Query<Row>, options?: LockOptions<Row>): Promise<readonly Row[]> {
    return this.each(table, query, options, async ({ row }) => row)
  }

  /** `update … where … returning *`: the rows as they are afterwards. */
  update<Row>(
    table: Table<Row>,
    query: Query<Row>,
    change: (row: Row) => Row,
    options?: LockOptions<Row>,
  ): Promise<readonly Row[]> {
    return this.each(table, query, options, async ({ tuple, row }) => {
      const changed = change(row)
      return this.unlessBusy(table, changed, tuple, (rival) => {
        if (rival !== null) throw taken(table, rival.index)
        table.write(tuple, changed)
        return changed
      })
    })
  }

  /** `delete … where …` */
  async delete<Row>(table: Table<Row>, query: Query<Row>): Promise<void> {
    await this.each(table, query, {}, async ({ tuple }) => table.erase(tuple))
  }

  /** `insert …`: a key that is taken is an error. */
  async insert<Row>(table: Table<Row>, rows: readonly Row[]): Promise<void> {
    for (const row of rows) {
      if (row !== rows[0]) await this.between()
      await this.unlessBusy(table, row, null, (rival) => {
        if (rival !== null) throw taken(table, rival.index)
        this.add(table, row)
      })
    }
  }

  /** `insert … on conflict do nothing returning *`: those of the rows that were inserted. */
  async insertNew<Row>(table: Table<Row>, rows: readonly Row[]): Promise<readonly Row[]> {
    const inserted: Row[] = []
    for (const row of rows) {
      if (row !== rows[0]) await this.between()
      await this.unlessBusy(table, row, null, (rival) => {
        if (rival !== null) return
        this.add(table, row)
        inserted.push(row)
      })
    }
    return inserted
  }

  /** `insert … on conflict do update … returning *`: the row as it is afterwards. */
  async upsert<Row>(table: Table<Row>, row: Row, change: (row: Row) => Row): Promise<Row> {
    for (;;) {
      const rival = await this.unlessBusy(table, row, null, (found) => {
        if (found === null) this.add(table, row)
        return found
      })
      if (rival === null) return row
      await this.take(table, rival.tuple, 'nobody')
      const newest = rival.tuple.newestFor(this)
      if (newest === null || rival.index.key(newest) !== rival.index.key(row)) continue
      const changed = change(newest)
      table.write(rival.tuple, changed)
      return changed
    }
  }

  /** The machines that hear of its commit before the last one. */
  machines(): readonly number[] {
    return [...new Set(Array.from(this.held.values(), ({ machine }) => machine))].sort((a, b) => a - b).slice(0, -1)
  }

  /** Makes visible what it wrote on that machine, and lets go of its rows there. */
  publish(machine: number): void {
    this.shared.commits += 1
    for (const [tuple, held] of this.held) {
      if (held.machine !== machine) continue
      held.settle(this.shared.commits)
      this.held.delete(tuple)
    }
  }

  commit(): void {
    this.shared.commits += 1
    this.end(this.shared.commits)
  }

  rollBack(): void {
    this.end(null)
  }

  private end(commit: number | null): void {
    this.shared.witness?.(null)
    for (const view of this.views) this.shared.snapshots.delete(view)
    for (const { settle } of this.held.values()) settle(commit)
    this.held.clear()
    this.shared.open.delete(this)
    this.release()
  }

  /** Locks the rows that the statement means, one after the other, and does something with each that still fits. */
  private async each<Row, Result>(
    table: Table<Row>,
    query: Query<Row>,
    { skipLocked = false, passesStrangers = () => false }: LockOptions<Row> = {},
    act: (found: Found<Row>) => Promise<Result>,
  ): Promise<readonly Result[]> {
    const { shared } = this
    const snapshot = new Snapshot(this, shared.commits)
    const fits = snapshot.condition(table, query)
    const results: Result[] = []
    shared.snapshots.add(snapshot)
    try {
      for (const [index, { tuple, row }] of snapshot.find(table, query, fits).entries()) {
        if (results.length === query.limit) break
        if (index > 0) await this.between()
        const passes = skipLocked ? 'all' : passesStrangers(row) ? 'strangers' : 'nobody'
        if (!(await this.take(table, tuple, passes))) continue
        const newest = tuple.newestFor(this)
        if (newest === null || (newest !== row && !fits(newest))) continue
        results.push(await act({ tuple, row: newest }))
      }
      return results
    } finally {
      shared.snapshots.delete(snapshot)
    }
  }

  /** Takes the lock of a row; false if another transaction has it and it is to be passed over. */
  private async take<Row>(table: Table<Row>, tuple: Tuple<Row>, passes: Passes): Promise<boolean> {
    if (tuple.owner !== this) for (const row of tuple.rows()) this.reportConflict(table, row)
    while (tuple.owner !== null && tuple.owner !== this) {
      if (passes === 'all' || (passes === 'strangers' && isBehindStranger(tuple.owner))) return false
      await this.waitFor(tuple.owner)
    }
    this.own(table, tuple)
    return true
  }

  private add<Row>(table: Table<Row>, row: Row): void {
    const tuple = table.add(this)
    table.write(tuple, row)
    this.own(table, tuple)
  }

  private own<Row>(table: Table<Row>, tuple: Tuple<Row>): void {
    tuple.owner = this
    const settle = (commit: number | null): void => {
      const isLeft = commit === null ? tuple.discard() : tuple.publish(commit, this.oldestSnapshot())
      if (!isLeft) table.remove(tuple)
      tuple.owner = null
    }
    this.held.set(tuple, { machine: this.shared.machineOf(table.name, tuple.newestFor(this)), settle })
  }

  private oldestSnapshot(): number {
    const { snapshots, commits } = this.shared
    return Math.min(commits, ...Array.from(snapshots, ({ commit }) => commit))
  }

  /**
   * Does something with the row that has a key of this one, or with the knowledge that there is none, before anybody else
   * can write one. A transaction that is about to take or to free such a key is waited for first.
   */
  private async unlessBusy<Row, Result>(
    table: Table<Row>,
    row: Row,
    self: Tuple<Row> | null,
    act: (rival: Rival<Row> | null) => Result,
  ): Promise<Result> {
    if (self === null) this.reportConflict(table, row)
    for (;;) {
      const rival = this.rival(table, row, self)
      if (rival === null || !('writer' in rival)) return act(rival)
      await this.waitFor(rival.writer)
    }
  }

  /** A row that is only locked is not waited for: its key stays what it is. */
  private rival<Row>(
    table: Table<Row>,
    row: Row,
    self: Tuple<Row> | null,
  ): Rival<Row> | { readonly writer: Owner } | null {
    for (const index of table.unique) {
      const key = index.key(row)
      if (key === null) continue
      for (const tuple of table.having(index, key)) {
        if (tuple === self) continue
        const { owner, draft } = tuple
        const newest = tuple.newestFor(this)
        const hasKey = newest !== null && index.key(newest) === key
        const isWanted = draft !== null && draft.row !== null && index.key(draft.row) === key
        if (owner !== null && owner !== this && draft !== null && (hasKey || isWanted)) {
          return { writer: owner }
        }
        if (hasKey) return { tuple, index }
      }
    }
    return null
  }

  private reportConflict<Row>(table: Table<Row>, row: Row): void {
    const { witness } = this.shared
    if (witness === null) return
    for (const index of table.unique) {
      const key = index.key(row)
      if (key !== null) witness(`${table.name} ${index.name} ${key}`)
    }
  }

  private async waitFor(owner: Owner): Promise<void> {
    for (let other: Owner | null = owner; other !== null; other = other.waitsFor) {
      if (other === this) throw new SqlError('40P01', `${this.name} and ${owner.name} wait for each other`)
    }
    this.waitsFor = owner
    await owner.ended
    this.waitsFor = null
    // Of several that waited for it, any may be the next.
    await this.between()
  }
}

function candidates<Row>(table: Table<Row>, { at }: Query<Row>): Iterable<Tuple<Row>> {
  if (at === undefined) return table.all()
  const index = table.index(at[0])
  return new Set(at[1].flatMap((key) => table.having(index, key)))
}

/** Whose locks are passed over. */
type Passes = 'all' | 'strangers' | 'nobody'

function isBehindStranger(owner: Owner): boolean {
  for (let one: Owner | null = owner; one !== null; one = one.waitsFor) if (one.isStranger) return true
  return false
}

function taken<Row>(table: Table<Row>, index: Index<Row>): SqlError {
  return new SqlError('23505', `A row of ${table.name} has this key in ${index.name} already`)
}
