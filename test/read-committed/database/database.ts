// A small database with many versions of each row. What its transactions may see of each other is described in `transaction.ts`.

import type { Table } from './table.ts'
import { Transaction, type Shared } from './transaction.ts'

export class Database {
  private readonly shared: Shared
  private begun = 0
  private drawn = 0

  /** @param machineOf where a row is; all are on one machine unless it says otherwise */
  constructor(machineOf: Shared['machineOf'] = () => 0) {
    this.shared = { commits: 0, open: new Set(), machineOf, snapshots: new Set(), witness: null }
  }

  begin(name: string): Transaction {
    this.begun += 1
    return new Transaction(`${name} (${this.begun})`, this.shared)
  }

  /** Begins a transaction of a user, who has nothing to do with any plan. */
  beginStranger(): Transaction {
    this.begun += 1
    return new Transaction(`stranger (${this.begun})`, this.shared, true)
  }

  /** Called with every key that a transaction takes or waits for, and with null of every end of a transaction. */
  watch(witness: (key: string | null) => void): void {
    this.shared.witness = witness
  }

  /** Puts a row in that is there from the beginning. */
  seed<Row>(table: Table<Row>, row: Row): void {
    const tx = this.begin('seed')
    const tuple = table.add(tx)
    table.write(tuple, row)
    tuple.publish(0, 0)
    tuple.owner = null
    tx.rollBack()
  }

  /**
   * Locks the row that has this key in the first index of its table, in a transaction of a user. Settles once it has the lock,
   * with how to let go of it.
   */
  async holdRow<Row>(table: Table<Row>, key: string): Promise<() => void> {
    const [index] = table.unique
    const tx = this.beginStranger()
    if (index !== undefined) await tx.lock(table, { at: [index.name, [key]] })
    return () => tx.rollBack()
  }

  /** Draws from a sequence: what was drawn is gone, also when the transaction rolls back. */
  nextNumber(): number {
    this.drawn += 1
    return this.drawn
  }

  /** Who waits for whom, to be named when nothing goes on. */
  waits(): readonly string[] {
    return Array.from(this.shared.open, ({ name, waitsFor }) =>
      waitsFor === null ? `${name} is open` : `${name} waits for ${waitsFor.name}`,
    )
  }
}
