// What this store does in transactions of its users: in one that they began on a connection of their own, and in one that
// the store begins for them on its own connection.
//
//   free   → ours    `transact`: BEGIN IMMEDIATE; the connection is lent to the user's function
//   ours   → free    the function is done and COMMIT was answered, or it failed, or its time is over: ROLLBACK
//   free   → theirs  `within`: a transaction that the user began is open on their connection
//   theirs → free    that transaction is over, which only looking tells, or it is open for longer than the storage timeout
//
// While it is not free, every other call of this process waits in front of the gate.

import { setTimeout } from 'node:timers/promises'
import { HoldfastError } from '../../core/error.ts'
import { fatal } from '../../core/verdict.ts'
import type { Hint, Within } from '../../store.ts'
import type { Connection } from './connection.ts'
import { bounded, type Gate } from './gate.ts'
import { userHandle, type UserHandle } from './handle.ts'
import { lend } from './lending.ts'
import { SqliteWithin } from './within.ts'

export interface UserTransactionsParts {
  readonly db: Connection
  readonly now: () => number
  readonly gate: Gate
  /** The file of the store's own connection; empty if it lives in memory. */
  readonly file: string
  /** How long a transaction may keep others waiting. */
  readonly storageMs: number
  /** A transaction is over, and this may have come of it. */
  readonly onOver: (hints: readonly Hint[]) => void
}

/** How often somebody looks whether a user's transaction is over. */
const lookEveryMs = 1

export class UserTransactions {
  private readonly parts: UserTransactionsParts
  /** What took place in the user's transaction that is open. */
  private joined: SqliteWithin[] = []
  /** A transaction of ours is open; or one of a user is, and somebody looks when it is over. */
  private isLending = false
  private isWatching = false

  constructor(parts: UserTransactionsParts) {
    this.parts = parts
  }

  within(handle: unknown): Within {
    const { db, now, file, gate } = this.parts
    const user = userHandle(handle)
    const isOwn = user.database === db.database
    if (!isOwn && (user.file === '' || user.file !== file)) throw otherFile(user.file, file)
    assertInTransaction(user)
    const within: SqliteWithin = new SqliteWithin({
      db: isOwn ? db : user.db,
      now,
      enter: () => this.join(handle as object, user, within),
    })
    // At once: the transaction may hold the write lock already.
    if (gate.opened === null) void this.watch(user, gate.closeNow(user.database))
    return within
  }

  async transact<Result>(work: (handle: unknown, within: Within) => Promise<Result>): Promise<Result> {
    const { db, now, gate, storageMs, onOver } = this.parts
    const open = await gate.close(db.database)
    this.isLending = true
    const { lent, takeBack } = lend(db.database)
    const own = userHandle(db.database)
    const enter = async (): Promise<void> => {
      assertLent(lent)
      if (!isInTransaction(own)) throw endedByUser()
    }
    const within = new SqliteWithin({ db, now, enter })
    let hints: readonly Hint[] = []
    try {
      db.begin()
      try {
        const result = await bounded(work(lent, within), storageMs)
        db.commit()
        hints = [...within.hints, ...this.joined.flatMap((one) => one.hints)]
        return result
      } catch (error) {
        db.rollBack()
        throw error
      }
    } finally {
      takeBack()
      this.isLending = false
      this.joined = []
      open()
      onOver(hints)
    }
  }

  /** Called before each call in a user's transaction: nobody else of this process may write from here on until it is over. */
  private async join(handle: object, user: UserHandle, within: SqliteWithin): Promise<void> {
    const { gate } = this.parts
    const { database } = user
    assertLent(handle)
    const open = gate.isHeldBy(database) ? null : await gate.close(database)
    if (!isInTransaction(user)) {
      open?.()
      throw notInTransaction()
    }
    if (!this.joined.includes(within)) this.joined.push(within)
    // Another store of this process may have closed the gate for the same transaction.
    if (open !== null || !(this.isWatching || this.isLending)) void this.watch(user, open)
  }

  private async watch(user: UserHandle, open: (() => void) | null): Promise<void> {
    const { storageMs, onOver } = this.parts
    this.isWatching = true
    for (let waitedMs = 0; isInTransaction(user) && waitedMs < storageMs; waitedMs += lookEveryMs) {
      await setTimeout(lookEveryMs)
    }
    this.isWatching = false
    const hints = this.joined.flatMap((one) => one.hints.splice(0))
    this.joined = []
    open?.()
    // Whether it was committed or rolled back is not known: a hint too many does no harm.
    onOver(hints)
  }
}

/** A connection that was closed meanwhile has no transaction either. */
function isInTransaction(user: UserHandle): boolean {
  try {
    return user.isInTransaction()
  } catch {
    return false
  }
}

function assertInTransaction(user: UserHandle): void {
  if (!isInTransaction(user)) throw notInTransaction()
}

function notInTransaction(): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    "holdfast.using(tx) needs a connection on which a transaction is open: db.exec('begin immediate') comes before it, and " +
      "db.exec('commit') after what it does was awaited.",
  )
}

function endedByUser(): Error {
  const message =
    'The function of a transaction has committed it or rolled it back. Leave its end to Holdfast: without it, what was written ' +
    'and what is recorded of it would come apart.'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}

function otherFile(theirs: string, ours: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'holdfast.using(tx) needs a connection to the file that holds the runs: one transaction cannot span two files. Open ' +
      'both on the same file, or hand your connection to openSqliteStore({ handle }).',
    { details: { theirs, ours } },
  )
}

/** A connection that was lent throws at every touch once it was taken back. */
function assertLent(handle: object): void {
  void (handle as { readonly exec?: unknown }).exec
}
