// What a transaction lends to the rules of the exchange: rows that it has locked, and a view of the rest.

import type { RunRow, TopicRow } from '../database/tables.ts'
import type { Snapshot } from '../database/transaction.ts'

export interface Lent {
  readonly runs: readonly RunRow[]
  /** Runs that were wanted, and that this transaction has not got: a stranger has them, or there are none. */
  readonly notGot: ReadonlySet<string>
  /** Topics by name, each at its position. */
  readonly topics: ReadonlyMap<string, TopicRow>
  /** What the statement after the locks sees; null if there was none, because hardly ever anybody is reached. */
  readonly view: Snapshot | null
  /** Whether what is not locked may be used all the same: to find out who has to be, or because of a planted error. */
  readonly isUnlocked: boolean
  /** Nothing of it is ever written. */
  readonly isDry: boolean
}
