// What an SQLite store is put together from.

import type { Clock, Logger } from '../../core/runtime/ports.ts'
import type { Capabilities } from '../../store.ts'
import type { Connection } from './driver/connection.ts'
import type { Gate } from './transactions/gate.ts'

/** The parts of a store; `openSqliteStore` puts them together. @internal */
export interface SqliteStoreParts {
  readonly db: Connection
  /** The one place where time comes from. */
  readonly now: () => number
  /** The clock behind it, if a test owns it; otherwise that is the database's. */
  readonly clock: Pick<Clock, 'now'> | undefined
  /** The time, and a number that changes whenever another connection has written. */
  readonly state: () => { readonly now: number; readonly version: number }
  /** How often this connection has written what may make a run claimable. */
  readonly writes: WriteCount
  /** The differences from SQLite's capabilities. */
  readonly capabilities?: Partial<Capabilities>
  /** All calls wait here while a user's transaction is open. */
  readonly gate: Gate
  /** The file, as SQLite calls it; empty if it lives in memory. */
  readonly file: string
  /** How long a call waits for others, and how long a transaction of ours may keep others waiting. */
  readonly storageMs: number
  /** Logs transactions of users that are open for longer. */
  readonly logger?: Pick<Logger, 'warn'> | undefined
  /** Called once, when the store is closed. */
  readonly onClose: () => void
}

export interface WriteCount {
  writes: number
}
