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

import { beginSql, type DefaultIsolation } from './isolation.ts'
import { HoldfastError, messageOf } from '../../../core/errors/error.ts'
import { fatal } from '../../../core/definition/retry-mark.ts'
import type { SqlHandle, SqlRow } from '../../sql-handle.ts'
import type { Execution } from '../execution.ts'
import type { ClientLike, PooledConnection } from './connection.ts'
import { isOverError, lendClient } from './loan.ts'
import { pathRead } from './search-path.ts'
import { transactionIdRead } from '../transaction-guard.ts'
import { isAborted, isTransient, sqlStateOf, translated, unanswered } from './sql-state.ts'

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
  readonly isolation: 'serializable' | DefaultIsolation
  readonly signal: AbortSignal
}

/** A setting of our own, made for one transaction: no end of a transaction leaves it as it is. */
const mark = 'holdfast.transaction'
const setMark = `set local ${mark} = 'open'`
const readMark = `pg_catalog.current_setting('${mark}'::text, true) as mark`
/** Whether the transaction itself was made read-only: neither the server nor its default is. */
const readAccess = `(pg_catalog.current_setting('transaction_read_only'::text) = 'on'::text
  and pg_catalog.current_setting('default_transaction_read_only'::text) = 'off'::text
  and not pg_catalog.pg_is_in_recovery())::text as is_read_only`

/** Marks a transaction of the user's own library. No query: those may come before SET TRANSACTION. */
export async function markTransaction(handle: SqlHandle): Promise<void> {
  await handle.query(setMark, [])
}

/** Throws if the transaction that was marked is over, or is not isolated as it was to be. Answers with its search path and id. */
export async function assertMarked(handle: SqlHandle, isolation?: 'serializable'): Promise<SqlRow> {
  const isolationRead = `pg_catalog.current_setting('transaction_isolation'::text) as isolation`
  const columns = [readMark, readAccess, pathRead, transactionIdRead, isolationRead]
  const [row] = await handle.query(`select ${columns.join(', ')}`, []).catch((error: unknown) => {
    throw isAborted(sqlStateOf(error)) ? swallowed(undefined) : error
  })
  assertWritable(row)
  if (row === undefined) throw endedByUser()
  if (isolation !== undefined && row['isolation'] !== isolation) throw notIsolated(row['isolation'])
  return row
}

/**
 * Whatever the function of a transaction did to the whole connection ends with it: roles, settings, advisory locks, temporary
 * tables, cursors, channels. Settings from the start of the connection stay. DISCARD ALL would also drop our prepared statements.
 */
export const resetSession = [
  'reset session authorization; reset role; reset all',
  'select pg_catalog.pg_advisory_unlock_all(); discard temp; close all; unlisten *',
]

export class LentTransaction {
  private readonly pooled: PooledConnection
  private readonly options: LentOptions
  private handedOver: Promise<void> | null = null
  /** The work in it has settled, or was given up. */
  private isOver = false
  /** The last failure of a statement of the user's function. */
  private failure: unknown

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
    const { lent: client, takeBack } = lendClient(this.pooled.client, (error) => {
      if (!isAborted(sqlStateOf(error))) this.failure = error
    })
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
      return this.rollBack({ error: translated(error) })
    }
    const command = await commit(this.pooled)
    // The state is that of a transaction which was rolled back: the outcome is certain.
    return command === 'COMMIT' ? outcome : { error: rolledBack({ code: '40000' }) }
  }

  private async begin(): Promise<void> {
    const { pooled } = this
    const { isolation, theirSettings } = this.options
    const begun = pooled.query({ text: beginSql(isolation) })
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
    const text = `${this.options.ourSettings}, ${readMark}, ${readAccess}`
    const { rows } = await this.pooled.query({ text }).catch((error: unknown) => {
      throw isAborted(sqlStateOf(error)) ? swallowed(this.failure) : error
    })
    assertWritable(rows[0])
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

/** Throws if the function has ended its transaction, or if nothing can be written in it. */
function assertWritable(row: SqlRow | undefined): void {
  if (row?.['mark'] !== 'open') throw endedByUser()
  if (row['is_read_only'] !== 'true') return
  const message =
    'A transaction was made read-only, by its function or by the library that began it, so the entry of its step cannot be ' +
    'written. Leave out READ ONLY; a step that only reads may be a ctx.step.'
  throw fatal(new HoldfastError('INVALID_OPTION', message))
}

/** A conflict with another transaction is one, also if the function has caught it. */
function swallowed(failure: unknown): Error {
  if (isTransient(sqlStateOf(failure))) return translated(failure)
  const which = failure === undefined ? '' : ` Postgres said: ${messageOf(failure)}.`
  const message =
    `A statement in the transaction failed, and its function returned all the same.${which} Postgres commits nothing after ` +
    'that. Let the error of the statement through, or put the statement behind a SAVEPOINT and roll back to that.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { cause: failure }))
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
    `A transaction was to be serializable, and is ${String(found)}. createHoldfast({ transaction }) learns of it from its second ` +
    'argument: (work, { isolation }) => db.transaction(work, { isolationLevel: isolation }).'
  return fatal(new HoldfastError('INVALID_OPTION', message))
}
