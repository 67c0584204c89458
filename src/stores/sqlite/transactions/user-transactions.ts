// The transactions of users: those that they began on a connection of their own, and those that the store begins for them on
// its own connection.
//
//   free   → ours    `transact`: BEGIN IMMEDIATE; the connection is lent to the user's function
//   ours   → free    the transaction is over, by the rules of `lent-transaction.ts`
//   free   → theirs  `within`: a transaction that the user began is open on their connection
//   theirs → free    that transaction is over, which only a look finds out
//
// While it is not free, all other writes of this process wait at the gate, and so do reads if the transaction is open on the
// very connection of this store. A transaction of theirs that is open for longer than the storage timeout is logged once, and
// left alone: only its owner may end it.

import { HoldfastError } from '../../../core/errors/error.ts'
import type { Logger } from '../../../core/runtime/ports.ts'
import type { Hint, TransactOptions, TransactionStore } from '../../../store.ts'
import { CallQueue } from '../driver/call-queue.ts'
import type { Connection } from '../driver/connection.ts'
import type { Gate } from './gate.ts'
import { isInTransaction, userHandle, type UserHandle } from './user-handle.ts'
import { assertLent, LentTransaction } from './lent-transaction.ts'
import { closed } from '../driver/sqlite-errors.ts'
import { SqliteTransactionStore } from './transaction-store.ts'

export interface UserTransactionsParts {
  readonly db: Connection
  readonly now: () => number
  readonly gate: Gate
  /** Where the store's own calls wait until they may write. */
  readonly writes: CallQueue
  /** The file of the store's own connection; empty if it lives in memory. */
  readonly file: string
  /** How long a transaction of ours may keep others waiting, and how long a call waits for one. */
  readonly storageMs: number
  readonly logger: Pick<Logger, 'warn'> | undefined
  /** A transaction is over, with the hints of its possible effects. */
  readonly onOver: (hints: readonly Hint[]) => void
}

/** How often the store checks whether a user's transaction is over: at first often, later so that it takes 5 % longer. */
const shortestLookMs = 1
const longestLookMs = 20

export class UserTransactions {
  private readonly parts: UserTransactionsParts
  /** The calls that took place in the user's transaction that is open. */
  private joined: SqliteTransactionStore[] = []
  /** A transaction of ours is open; or one of a user is, and its end is polled. */
  private lent: LentTransaction | null = null
  private isWatching = false
  private isClosed = false

  constructor(parts: UserTransactionsParts) {
    this.parts = parts
  }

  inTransaction(handle: unknown): TransactionStore {
    const { db, now, file, gate, storageMs } = this.parts
    if (this.isClosed) throw closed()
    const user = userHandle(handle)
    const { database } = user
    const isOwn = database === db.database
    if (!isOwn && (user.file === '' || user.file !== file)) throw otherFile(user.file, file)
    if (!isInTransaction(user)) throw notInTransaction()
    const transactionStore: SqliteTransactionStore = new SqliteTransactionStore({
      db: isOwn ? db : user.db,
      now,
      calls: new CallQueue({ shut: () => (gate.isHeldBy(database) ? null : gate.opened), waitMs: storageMs }),
      enter: () => this.join(handle as object, user, transactionStore),
    })
    // At once: the transaction may hold the write lock already.
    if (gate.opened === null) void this.watch(user, gate.shut(database))
    return transactionStore
  }

  async transact<Result>(
    work: (handle: unknown, inTransaction: TransactionStore) => Promise<Result>,
    { signal }: TransactOptions = {},
  ): Promise<Result> {
    const { transaction, inTransaction } = await this.parts.writes.enter(() => this.begin(signal), { signal })
    return transaction.perform(() => work(transaction.handle, inTransaction))
  }

  /** Rolls back a lent transaction. Those that users have begun are theirs to end. */
  close(): void {
    this.isClosed = true
    this.lent?.rollBack(closed())
  }

  private begin(signal: AbortSignal | undefined): {
    readonly transaction: LentTransaction
    readonly inTransaction: SqliteTransactionStore
  } {
    const { db, now, gate, storageMs } = this.parts
    db.begin()
    const open = gate.shut(db.database)
    const onOver = (isCommitted: boolean): void => {
      const hints = isCommitted ? [inTransaction, ...this.joined].flatMap((one) => one.hints) : []
      this.lent = null
      this.joined = []
      open()
      this.parts.onOver(hints)
    }
    const transaction = new LentTransaction({ db, storageMs, signal, onOver })
    const calls = new CallQueue({ shut: () => null, waitMs: storageMs })
    const inTransaction = new SqliteTransactionStore({ db, now, calls, enter: () => transaction.assertOpen() })
    this.lent = transaction
    return { transaction, inTransaction }
  }

  /**
   * Called right before each call in a user's transaction: no other code of this process may write from here on until it is
   * over.
   */
  private join(handle: object, user: UserHandle, inTransaction: SqliteTransactionStore): void {
    const { gate } = this.parts
    if (this.isClosed) throw closed()
    assertLent(handle)
    if (!isInTransaction(user)) throw notInTransaction()
    const open = gate.isHeldBy(user.database) ? null : gate.shut(user.database)
    if (!this.joined.includes(inTransaction)) this.joined.push(inTransaction)
    // Another store of this process may have shut the gate for the same transaction.
    if (open !== null || !(this.isWatching || this.lent !== null)) void this.watch(user, open)
  }

  private async watch(user: UserHandle, open: (() => void) | null): Promise<void> {
    const { storageMs, onOver } = this.parts
    this.isWatching = true
    const began = performance.now()
    let hasWarned = false
    while (isInTransaction(user)) {
      const openMs = performance.now() - began
      if (openMs >= storageMs && !hasWarned) {
        hasWarned = true
        this.warnLongOpen(storageMs, user)
      }
      await pause(Math.min(Math.max(openMs / 20, shortestLookMs), longestLookMs), hasWarned)
    }
    this.isWatching = false
    const hints = this.joined.flatMap((one) => one.hints.splice(0))
    this.joined = []
    open?.()
    // Whether it was committed or rolled back is not known: a hint too many does no harm.
    onOver(hints)
  }

  private warnLongOpen(ms: number, { file }: UserHandle): void {
    this.parts.logger?.warn(
      `A transaction that was handed to holdfast.using(tx) is open for ${Math.round(ms)} ms, the storage timeout, and while it is, ` +
        'Holdfast writes nothing else from this process. Commit it or roll it back, also when something in it throws, and do ' +
        'slow work before it.',
      { file },
    )
  }
}

/** A transaction that is never ended must not keep the process alive. */
function pause(ms: number, isBackground: boolean): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    if (isBackground) timer.unref()
  })
}

function notInTransaction(): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    "holdfast.using(tx) needs a connection on which a transaction is open: db.exec('begin immediate') comes before it, and " +
      "db.exec('commit') after what it does was awaited.",
  )
}

function otherFile(theirs: string, ours: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'holdfast.using(tx) needs a connection to the file that holds the runs: one transaction cannot span two files. Open ' +
      'both on the same file, or hand your connection to openSqliteStore({ handle }).',
    { details: { theirs, ours } },
  )
}
