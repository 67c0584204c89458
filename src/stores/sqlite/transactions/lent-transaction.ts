// A transaction that the store has begun on its own connection, and lends to a user's function.
//
//   open → committed    the function was fulfilled: COMMIT, in the same turn
//   open → rolled back  the function was rejected, the COMMIT was refused, the signal was aborted, the storage timeout is over,
//                       or the store is being closed
//
// Once it is over, the function can do nothing more with it, however long it goes on.

import { HoldfastError } from '../../../core/errors/error.ts'
import { fatal } from '../../../core/definition/retry-mark.ts'
import { longestTimerMs } from '../driver/call-queue.ts'
import type { Connection } from '../driver/connection.ts'
import { isInTransaction, userHandle } from './user-handle.ts'
import { lend, type Loan } from './loan.ts'

export interface LentTransactionParts {
  /** A transaction was begun on it. */
  readonly db: Connection
  /** How long it may keep others waiting. */
  readonly storageMs: number
  readonly signal: AbortSignal | undefined
  /** Called once, when it is over and the connection is free. */
  readonly onOver: (isCommitted: boolean) => void
}

export class LentTransaction {
  /** The connection, for as long as the transaction is open. */
  readonly handle: object
  private readonly parts: LentTransactionParts
  private readonly loan: Loan<object>
  private readonly timer: ReturnType<typeof setTimeout>
  private isOver = false
  /**
   * Rejects the promise of its end. Before it is performed there is none: then this keeps the reason why it never will be.
   */
  private reject: (error: unknown) => void = (because) => void (this.refused = { because })
  private refused: { readonly because: unknown } | null = null

  constructor(parts: LentTransactionParts) {
    const { db, storageMs, signal } = parts
    this.parts = parts
    this.loan = lend(db.database)
    this.handle = this.loan.lent
    this.timer = setTimeout(() => this.rollBack(tooLong(storageMs)), Math.min(storageMs, longestTimerMs))
    signal?.addEventListener('abort', this.abort)
  }

  /** Settles when it is over: like `work`, unless a rollback was faster. */
  perform<Result>(work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.refused !== null) return reject(this.refused.because)
      this.reject = reject
      void Promise.resolve()
        .then(() => (this.isOver ? undefined : work()))
        .then(
          (result) => this.commit() && resolve(result as Result),
          (error: unknown) => this.rollBack(error),
        )
    })
  }

  /**
   * Throws if it is over, or if the function has ended it by itself: at the end it also shows if another one was begun. From
   * here on the engine writes, so temporary tables of the function go: one named `runs` would stand in the place of ours.
   */
  assertOpen(): void {
    assertLent(this.handle)
    if (!isInTransaction(userHandle(this.parts.db.database))) throw endedByUser()
    this.parts.db.allowWrites()
    dropTemporary(this.parts.db)
  }

  rollBack(because: unknown): void {
    if (this.isOver) return
    this.parts.db.rollBack()
    this.over(false)
    this.reject(because)
  }

  private commit(): boolean {
    if (this.isOver) return false
    try {
      this.assertOpen()
      if (!this.parts.db.takeMark()) throw endedByUser()
      this.parts.db.commit()
    } catch (error) {
      this.rollBack(error)
      return false
    }
    this.over(true)
    return true
  }

  private readonly abort = (): void => this.rollBack(this.parts.signal?.reason)

  private over(isCommitted: boolean): void {
    this.isOver = true
    clearTimeout(this.timer)
    this.parts.signal?.removeEventListener('abort', this.abort)
    this.loan.takeBack()
    this.parts.db.tryToAllowWrites()
    this.parts.onOver(isCommitted)
  }
}

/** A connection that was lent throws at every touch once it was taken back. */
export function assertLent(handle: object): void {
  void (handle as { readonly exec?: unknown }).exec
}

/** Virtual tables first, which take their shadow tables with them; a table takes its triggers. */
const temporaries = `select type, name from sqlite_temp_master
  where type in ('table', 'view', 'trigger') and name not like 'sqlite\\_%' escape '\\' order by type = 'table', rootpage`

function dropTemporary(db: Connection): void {
  const found = db.read(() => db.all(temporaries, []))
  for (const { type, name } of found) {
    db.exec(`drop ${String(type)} if exists temp."${String(name).replaceAll('"', '""')}"`)
  }
}

function endedByUser(): Error {
  const message =
    'The function of a transaction has committed it or rolled it back. Leave its end to Holdfast: without it, what was written ' +
    'and what is recorded of it would come apart.'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}

function tooLong(ms: number): HoldfastError {
  const message =
    `A transaction was open for ${Math.round(ms)} ms, the storage timeout, and was rolled back: SQLite has one writer at ` +
    'a time, and every other writer was waiting. Inside it, reach Holdfast only through holdfast.using(tx), and do slow ' +
    'work before it.'
  return new HoldfastError('STORE_UNAVAILABLE', message)
}
