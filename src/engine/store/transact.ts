// Transactions of users, as the engine lends them to a worker: begun by the store, or by the user's own library. It reports
// the outcome of each, and never more than is certain: once COMMIT was sent, an error leaves that open unless the database
// itself reports that nothing happened.

import type {
  Acknowledged,
  Isolation,
  Transact,
  Transacted,
  TransactionOptions,
  TransactionWork,
} from '../../core/definition/definition.ts'
import { HoldfastError, isHoldfastError, isStoreAway, messageOf } from '../../core/errors/error.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import type { Transition } from '../../core/model/transition.ts'
import { fatal } from '../../core/definition/retry-mark.ts'
import type { Committed, Store, StoreTransactions, TransactionStore } from '../../store.ts'
import { acknowledge } from '../batch/committer.ts'
import { Semaphore } from './semaphore.ts'

/**
 * Begins a transaction with the user's own library, lets `work` write in it, and commits it: `db.transaction(work)`. It
 * receives the requested isolation of a transaction, and a signal that aborts when the attempt is given up.
 */
export type TransactionRunner = (
  work: (tx: unknown) => Promise<unknown>,
  options: { readonly isolation?: Isolation; readonly signal: AbortSignal },
) => PromiseLike<unknown>

export interface TransactOptions {
  readonly store: Store
  /** The user's own way, if they brought one. */
  readonly own: TransactionRunner | undefined
  /** How many of those may be open at once. @default as many as the store has places for, or 10 */
  readonly mostOwn?: number | undefined
  readonly ports: Ports
}

/** The part of a store that takes place in transactions of users; null if it has none. */
export function transactionsOf(store: Store): StoreTransactions | null {
  return 'inTransaction' in store && 'transact' in store ? (store as Store & StoreTransactions) : null
}

/** Pools of most libraries have ten connections by default. */
const usualMostOwn = 10

/**
 * The work in a transaction: with the user's handle, and with the store inside of it. `check` comes before the last call of that
 * store: it throws if the user's code has ended the transaction.
 */
export type TransactionBody = (
  tx: unknown,
  inside: { readonly store: TransactionStore; readonly check: () => Promise<void> },
) => Promise<void>

/** Begins a transaction for that work, waiting for the store while it is unavailable, and reports its outcome. */
export type RunTransaction = (work: TransactionBody, options: TransactionOptions) => Promise<Transacted>

/** Steps that are transactions: the last thing that each writes is its transition. */
export function createTransact(transactions: RunTransaction | null, onTime: (at: number) => void): Transact | null {
  if (transactions === null) return null
  return (work: TransactionWork, options) => {
    let at: number | null = null
    const body: TransactionBody = (tx, { store, check }) =>
      work(tx, async (transition) => {
        await check()
        const answer = await commitWithin(store, transition)
        at = answer.at
        return answer
      }).then(() => {
        if (at !== null) onTime(at)
      })
    return transactions(body, options)
  }
}

export function createTransactions({ store, own, mostOwn, ports }: TransactOptions): RunTransaction | null {
  const transactions = transactionsOf(store)
  if (transactions === null) return null
  const begin = own === undefined ? byStore(transactions) : byLibrary(transactions, own, mostOwn)

  return async (work, options) => {
    const pause = createBackoff(ports)
    for (;;) {
      const attempt = new OneTransaction(work, options)
      try {
        await begin(attempt)
        if (attempt.state === 'fulfilled') return { outcome: 'committed' }
        return attempt.undecided()
      } catch (error) {
        const isAway = attempt.state === 'not-begun' && isStoreAway(error)
        if (!isAway || options.signal.aborted) return attempt.failed(error, own !== undefined)
        ports.logger.warn('The store is unavailable; a transaction is begun again soon.', { error })
        await pause()
      }
    }
  }
}

type Begin = (transaction: OneTransaction) => Promise<unknown>

function byStore(store: StoreTransactions): Begin {
  return (transaction) => {
    const { signal, isolation } = transaction.options
    const options = isolation === undefined ? { signal } : { signal, isolation }
    return store.transact((tx, transactionStore) => transaction.perform(tx, transactionStore), options)
  }
}

/**
 * A library opens any number of transactions, and a caller that finds its pool empty waits there, heartbeats too if the store
 * has the same pool. So each transaction waits for a place before it is begun, as those of the store do.
 */
function byLibrary(store: StoreTransactions, own: TransactionRunner, mostOwn: number | undefined): Begin {
  const limit = mostOwn ?? (store.reserve === undefined ? usualMostOwn : Number.POSITIVE_INFINITY)
  const semaphore = new Semaphore(limit)
  const begin = openByLibrary(store, own)
  return async (transaction) => {
    const { signal } = transaction.options
    const leave = await semaphore.enter(signal)
    try {
      const giveBack = await store.reserve?.(signal)
      try {
        await begin(transaction)
      } finally {
        giveBack?.()
      }
    } finally {
      leave()
    }
  }
}

function openByLibrary(store: StoreTransactions, own: TransactionRunner): Begin {
  return async (transaction) => {
    const { signal, isolation } = transaction.options
    const work = async (tx: unknown): Promise<void> => {
      const transactionStore = transactionStoreOf(store, tx)
      // A library has no idea of our entry: whether it goes into the same transaction is ours to see.
      await transactionStore.mark?.()
      const check = (): Promise<void> | undefined => transactionStore.assertMarked?.(isolation)
      return untilAborted(transaction.perform(tx, transactionStore, check), signal)
    }
    await own(work, isolation === undefined ? { signal } : { signal, isolation })
  }
}

/** A library rolls back, and lets go of its connection, when the work in it is rejected, and not before. */
function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function transactionStoreOf(store: StoreTransactions, tx: unknown): TransactionStore {
  try {
    return store.inTransaction(tx)
  } catch (error) {
    // Another attempt would get the same from the same library.
    throw error instanceof Error ? fatal(error) : error
  }
}

/** One transaction: how far the work in it has come, which decides what its end means. */
class OneTransaction {
  state: 'not-begun' | 'running' | 'fulfilled' | 'rejected' = 'not-begun'
  private error: unknown
  readonly options: TransactionOptions
  private readonly work: TransactionBody

  constructor(work: TransactionBody, options: TransactionOptions) {
    this.work = work
    this.options = options
  }

  async perform(
    tx: unknown,
    transactionStore: TransactionStore,
    check: () => Promise<void> | undefined = () => undefined,
  ): Promise<void> {
    try {
      if (this.state !== 'not-begun') throw calledAgain()
      this.state = 'running'
      await this.work(tx, { store: transactionStore, check: async () => check() })
      this.state = 'fulfilled'
    } catch (error) {
      this.state = 'rejected'
      this.error = error
      throw error
    }
  }

  /** It ended with an error. */
  failed(error: unknown, isOwn: boolean): Transacted {
    if (this.state === 'rejected') return { outcome: 'rolled-back', error: this.error }
    if (this.state !== 'fulfilled') return { outcome: 'rolled-back', error }
    const isCertain = isRefusedBySql(error) || (!isOwn && !isHoldfastError(error, 'STORE_UNAVAILABLE'))
    return isCertain ? { outcome: 'rolled-back', error } : { outcome: 'unknown', error: unknownOutcome(error) }
  }

  /** It ended well, though the work in it did not. */
  undecided(): Transacted {
    if (this.state === 'rejected') return { outcome: 'rolled-back', error: this.error }
    return { outcome: 'unknown', error: notAwaited() }
  }
}

async function commitWithin(transactionStore: TransactionStore, transition: Transition): Promise<Acknowledged> {
  const [answer] = await transactionStore.commit([transition])
  return acknowledge(transition, answer as Committed, true)
}

/** SQLSTATE classes with which a COMMIT says that it rolled back: constraints, serialization, and what triggers raise. */
const certainStates = /^(?:23...|40(?!003)...|44...|P0...)$/

/** Whether the database itself has reported that nothing was committed, also if the library has wrapped its error. */
function isRefusedBySql(error: unknown): boolean {
  let one: unknown = error
  for (let depth = 0; depth < 5 && typeof one === 'object' && one !== null; depth += 1) {
    const { code, cause, driverError } = one as { code?: unknown; cause?: unknown; driverError?: unknown }
    if (typeof code === 'string' && (certainStates.test(code) || code.startsWith('SQLITE_CONSTRAINT'))) return true
    one = cause ?? driverError
  }
  return false
}

function unknownOutcome(cause: unknown): HoldfastError {
  return new HoldfastError(
    'STORE_UNAVAILABLE',
    'The answer to the COMMIT of a transaction is missing: it may or may not have taken effect. The run is given back; its journal ' +
      `will show it. ${messageOf(cause)}`,
    { cause },
  )
}

function calledAgain(): Error {
  const message =
    'createHoldfast({ transaction }) called its work a second time. A transaction is tried once: leave it to the retry ' +
    'policy of the step to try it again.'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}

function notAwaited(): HoldfastError {
  const message =
    'createHoldfast({ transaction }) settled before its work was done. Return the promise of your transaction: ' +
    '(work) => db.transaction(work).'
  return new HoldfastError('INVALID_OPTION', message)
}
