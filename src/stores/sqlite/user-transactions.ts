// What this store does in transactions of its users: in one that they began on a connection of their own, and in one that
// the store begins for them on its own connection.
//
//   free   → ours    `transact`: BEGIN IMMEDIATE; the connection is lent to the user's function
//   ours   → free    the transaction is over, by the rules of `lent-transaction.ts`
//   free   → theirs  `within`: a transaction that the user began is open on their connection
//   theirs → free    that transaction is over, which only looking tells
//
// While it is not free, whatever else of this process wants to write waits in front of the gate, and so does what wants to
// read if the transaction is open on the very connection of this store. A transaction of theirs that is open for longer than the
// storage timeout is told of once, and stays what it is: nobody but its owner may end it.

import { HoldfastError } from '../../core/error.ts'
import type { Logger } from '../../core/ports.ts'
import type { Hint, TransactOptions, TransactionStore } from '../../store.ts'
import { CallQueue } from './call-queue.ts'
import type { Connection } from './connection.ts'
import type { Gate } from './gate.ts'
import { isInTransaction, userHandle, type UserHandle } from './handle.ts'
import { assertLent, LentTransaction } from './lent-transaction.ts'
import { closed } from './translate.ts'
import { SqliteWithin } from './within.ts'

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
  /** A transaction is over, and this may have come of it. */
  readonly onOver: (hints: readonly Hint[]) => void
}

/** How often somebody looks whether a user's transaction is over: at first often, later so that it takes 5 % longer. */
const shortestLookMs = 1
const longestLookMs = 20

export class UserTransactions {
  private readonly parts: UserTransactionsParts
  /** What took place in the user's transaction that is open. */
  private joined: SqliteWithin[] = []
  /** A transaction of ours is open; or one of a user is, and somebody looks when it is over. */
  private lent: LentTransaction | null = null
  private isWatching = false
  private isClosed = false

  constructor(parts: UserTransactionsParts) {
    this.parts = parts
  }

  within(handle: unknown): TransactionStore {
    const { db, now, file, gate, storageMs } = this.parts
    if (this.isClosed) throw closed()
    const user = userHandle(handle)
    const { database } = user
    const isOwn = database === db.database
    if (!isOwn && (user.file === '' || user.file !== file)) throw otherFile(user.file, file)
    if (!isInTransaction(user)) throw notInTransaction()
    const within: SqliteWithin = new SqliteWithin({
      db: isOwn ? db : user.db,
      now,
      calls: new CallQueue({ shut: () => (gate.isHeldBy(database) ? null : gate.opened), waitMs: storageMs }),
      enter: () => this.join(handle as object, user, within),
    })
    // At once: the transaction may hold the write lock already.
    if (gate.opened === null) void this.watch(user, gate.shut(database))
    return within
  }

  async transact<Result>(
    work: (handle: unknown, within: TransactionStore) => Promise<Result>,
    { signal }: TransactOptions = {},
  ): Promise<Result> {
    const { transaction, within } = await this.parts.writes.enter(() => this.begin(signal), { signal })
    return transaction.perform(() => work(transaction.handle, within))
  }

  /** Rolls back what is lent. What users have begun is theirs to end. */
  close(): void {
    this.isClosed = true
    this.lent?.rollBack(closed())
  }

  private begin(signal: AbortSignal | undefined): {
    readonly transaction: LentTransaction
    readonly within: SqliteWithin
  } {
    const { db, now, gate, storageMs } = this.parts
    db.begin()
    const open = gate.shut(db.database)
    const onOver = (isCommitted: boolean): void => {
      const hints = isCommitted ? [within, ...this.joined].flatMap((one) => one.hints) : []
      this.lent = null
      this.joined = []
      open()
      this.parts.onOver(hints)
    }
    const transaction = new LentTransaction({ db, storageMs, signal, onOver })
    const calls = new CallQueue({ shut: () => null, waitMs: storageMs })
    const within = new SqliteWithin({ db, now, calls, enter: () => transaction.assertOpen() })
    this.lent = transaction
    return { transaction, within }
  }

  /** Called right before each call in a user's transaction: nobody else of this process may write from here on until it is over. */
  private join(handle: object, user: UserHandle, within: SqliteWithin): void {
    const { gate } = this.parts
    if (this.isClosed) throw closed()
    assertLent(handle)
    if (!isInTransaction(user)) throw notInTransaction()
    const open = gate.isHeldBy(user.database) ? null : gate.shut(user.database)
    if (!this.joined.includes(within)) this.joined.push(within)
    // Another store of this process may have shut the gate for the same transaction.
    if (open !== null || !(this.isWatching || this.lent !== null)) void this.watch(user, open)
  }

  private async watch(user: UserHandle, open: (() => void) | null): Promise<void> {
    const { storageMs, onOver } = this.parts
    this.isWatching = true
    const began = performance.now()
    let isTold = false
    while (isInTransaction(user)) {
      const openMs = performance.now() - began
      if (openMs >= storageMs && !isTold) {
        isTold = true
        this.tell(storageMs, user)
      }
      await pause(Math.min(Math.max(openMs / 20, shortestLookMs), longestLookMs), isTold)
    }
    this.isWatching = false
    const hints = this.joined.flatMap((one) => one.hints.splice(0))
    this.joined = []
    open?.()
    // Whether it was committed or rolled back is not known: a hint too many does no harm.
    onOver(hints)
  }

  private tell(ms: number, { file }: UserHandle): void {
    this.parts.logger?.warn(
      `A transaction that was handed to holdfast.using(tx) is open for ${Math.round(ms)} ms, the storage timeout, and while it is, ` +
        'Holdfast writes nothing else from this process. Commit it or roll it back, also when something in it throws, and do ' +
        'slow work before it.',
      { file },
    )
  }
}

/** Nobody stays alive for the sake of a transaction that is never ended. */
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
