// A transaction on a connection that a user's function writes with.
//
//   opening    → theirs      BEGIN was answered. The settings of the server hold, not ours, and a mark that lasts exactly as long
//                            as this transaction
//   opening    → rolled back one of these was refused: by then a transaction may be open
//   theirs     → ours        the function is done, and the first statement of ours comes, or the end: the mark must still be
//                            there, else the function has ended the transaction itself, or reset everything. From here on our
//                            settings hold
//   ours       → committing  the work is fulfilled, and COMMIT was sent. From here on an abort has no effect: the answer is the
//                            outcome, and without an answer the outcome is unknown
//   theirs, ours → rolled back   the work was rejected
//   theirs, ours → torn down     aborted, by a timeout or because the store is closed: the connection is destroyed, and with it
//                            the transaction, even while the function or a statement of it is running

import { HoldfastError } from '../../../core/errors/error.ts'
import { fatal } from '../../../core/definition/retry-mark.ts'
import type { SqlHandle } from '../../sql-handle.ts'
import type { Execution } from '../execution.ts'
import type { ClientLike, PooledConnection } from './connection.ts'
import { isOverError, lendClient } from './loan.ts'
import { pathRead } from './search-path.ts'
import { isAborted, sqlStateOf, translated, unanswered } from './sql-state.ts'

export interface LendOptions {
  /** Tears the transaction down, at any time before its COMMIT. */
  readonly signal?: AbortSignal | undefined
  /** @default the default of the server */
  readonly isolation?: 'serializable' | undefined
  /** How long a statement of ours may take. @default the storage timeout */
  readonly patienceMs?: number
  /** Waits for its turn for no longer than the storage timeout. @default false: for as long as that takes */
  readonly inTime?: boolean
}

/** The outcome of work that may fail for reasons of its own. */
export type Outcome<Answer> = { readonly result: Answer } | { readonly error: unknown }

/** The argument of the work in a transaction. */
export interface Lent {
  /** The client of the user's function. */
  readonly client: ClientLike
  /** Executes statements of ours under the user's settings: for what takes long. */
  readonly x: Execution
  /** Where statements of ours go, under our settings, once the function is done. */
  readonly handle: SqlHandle
  /** The function is done: all its later calls on the connection are refused. */
  readonly takeBack: () => void
}

export interface LentOptions {
  /** Statements that give the user the settings of the server; null if ours do not hold on this connection. */
  readonly theirSettings: string | null
  /** A statement that gives us our own. */
  readonly ourSettings: string
  readonly isolation: 'serializable' | undefined
  readonly signal: AbortSignal
}

/** A setting of our own, made for one transaction: no end of a transaction leaves it as it is. */
const mark = 'holdfast.transaction'
const setMark = `set local ${mark} = 'open'`
const readMark = `pg_catalog.current_setting('${mark}'::text, true) as mark`

/** Marks a transaction of the user's own library. No query: those may come before SET TRANSACTION. */
export async function markTransaction(handle: SqlHandle): Promise<void> {
  await handle.query(setMark, [])
}

/** Throws if the transaction that was marked is over, or is not isolated as it was to be. Answers with its search path. */
export async function assertMarked(handle: SqlHandle, isolation?: 'serializable'): Promise<unknown> {
  const [row] = await handle.query(
    `select ${readMark}, ${pathRead}, pg_catalog.current_setting('transaction_isolation'::text) as isolation`,
    [],
  )
  if (row?.['mark'] !== 'open') throw endedByUser()
  if (isolation !== undefined && row['isolation'] !== isolation) throw notIsolated(row['isolation'])
  return row['path']
}

export class LentTransaction {
  private readonly pooled: PooledConnection
  private readonly options: LentOptions
  private handedOver: Promise<void> | null = null
  /** The work in it has settled, or was given up. */
  private isOver = false

  constructor(pooled: PooledConnection, options: LentOptions) {
    this.pooled = pooled
    this.options = options
  }

  async run<Answer>(x: Execution, work: (lent: Lent) => Promise<Answer>): Promise<Outcome<Answer>> {
    try {
      await this.begin()
    } catch (error) {
      await this.rollBack({ error })
      throw error
    }
    const { lent: client, takeBack } = lendClient(this.pooled.client)
    const handle: SqlHandle = {
      query: async (text, values) => {
        if (this.isOver) throw isOverError()
        await this.handOver()
        return (await this.pooled.query({ text, values })).rows
      },
    }
    const outcome = await this.outcomeOf(() => work({ client, x, handle, takeBack }))
    this.isOver = true
    takeBack()
    if ('error' in outcome) return this.rollBack(outcome)
    try {
      await this.handOver()
    } catch (error) {
      return this.rollBack({ error: isAborted(sqlStateOf(error)) ? rolledBack(error) : translated(error) })
    }
    const command = await commit(this.pooled)
    // The state is that of a transaction which was rolled back: the outcome is certain.
    return command === 'COMMIT' ? outcome : { error: rolledBack({ code: '40000' }) }
  }

  private async begin(): Promise<void> {
    const { pooled } = this
    const { isolation, theirSettings } = this.options
    const begin = isolation === undefined ? 'begin' : `begin isolation level ${isolation}`
    const begun = pooled.query({ text: begin })
    if (!pooled.pipeline) await begun
    // Without a transaction this changes nothing that is not reset.
    const text = theirSettings === null ? setMark : `${theirSettings}; ${setMark}`
    await Promise.all([begun, pooled.query({ text })])
  }

  /** Settles with the work, or when it is aborted; a later result of the work is ignored. */
  private async outcomeOf<Answer>(work: () => Promise<Answer>): Promise<Outcome<Answer>> {
    const { signal } = this.options
    let onAbort = (): void => undefined
    const aborted = new Promise<Outcome<Answer>>((resolve) => {
      onAbort = () => resolve({ error: signal.reason })
      signal.addEventListener('abort', onAbort)
      if (signal.aborted) onAbort()
    })
    try {
      return await Promise.race([settled(work), aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  private async rollBack(outcome: { readonly error: unknown }): Promise<{ readonly error: unknown }> {
    const { pooled, options } = this
    // A statement that hangs would keep a ROLLBACK waiting.
    if (options.signal.aborted) await pooled.destroy()
    // A connection that is gone rolls back by itself.
    else await pooled.query({ text: 'rollback' }).catch(() => undefined)
    return outcome
  }

  private handOver(): Promise<void> {
    this.handedOver ??= this.assertOpen()
    return this.handedOver
  }

  private async assertOpen(): Promise<void> {
    const { rows } = await this.pooled.query({ text: `${this.options.ourSettings}, ${readMark}` })
    if (rows[0]?.['mark'] !== 'open') throw endedByUser()
  }
}

/** The outcome as the database reports it. Without an answer it is unknown. */
export async function commit(pooled: PooledConnection): Promise<string> {
  try {
    return (await pooled.query({ text: 'commit' })).command
  } catch (error) {
    throw unanswered(error)
  }
}

function settled<Answer>(work: () => Promise<Answer>): Promise<Outcome<Answer>> {
  return work().then(
    (result) => ({ result }),
    // Theirs goes to them as it is, and says nothing of the connection.
    (error: unknown) => ({ error }),
  )
}

function rolledBack(cause: unknown): HoldfastError {
  const message = 'The transaction was rolled back: a statement in it had failed.'
  return new HoldfastError('STORE_UNAVAILABLE', message, { cause })
}

function endedByUser(): Error {
  const message =
    'The function of a transaction has committed it or rolled it back, or has taken back its settings with RESET ALL, which looks ' +
    'the same. Leave its end to Holdfast: without it, your writes and the journal would disagree. Take back ' +
    'single settings by their name.'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}

function notIsolated(found: unknown): Error {
  const message =
    `A transaction was to be serializable, and is ${String(found)}. createHoldfast({ transaction }) is told of it as its second ` +
    'argument: (work, { isolation }) => db.transaction(work, { isolationLevel: isolation }).'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}
