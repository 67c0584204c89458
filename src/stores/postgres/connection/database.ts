// The way to the database: connections from a pool, statements prepared once on each, transactions sent in as few round trips
// as their answers allow, and retries after conflicts.
//
// Connections that this store opened itself carry its settings from their start. On any other (the user's own pool, or one
// behind a pooler, which gives every transaction another connection) nothing may be left behind, so there every statement
// stands in a transaction that begins with the settings.

import { HoldfastError } from '../../../core/errors/error.ts'
import type { StatementName } from '../statement-name.ts'
import { StorageLimit } from '../../storage-limit.ts'
import { ConnectionBudget, type ConnectionUse } from './connection-budget.ts'
import type { Statement } from '../dialect.ts'
import type { AloneOptions, Execution, Reserved, Row, DetailedHint, Transactions, Value } from '../execution.ts'
import { commit, LentTransaction, type Lent, type Outcome, type LendOptions, resetSession } from './lent-transaction.ts'
import type { ClientLike, PooledConnection, PoolUse, PoolSource, PoolLike } from './connection.ts'
import { withConnection } from './connection.ts'
import type { Rights } from '../schema/missing-right.ts'
import { isAborted, isLocked, isUnknownStatement, isTransient, sqlStateOf, translated } from './sql-state.ts'
import { StatementNames } from './statement-names.ts'
import { beginSql, type DefaultIsolation } from './isolation.ts'
import { areSame, timesFor, timesSql, type LockWait, type Times } from './timeouts.ts'

export type { ClientLike, PoolLike } from './connection.ts'

export interface DatabaseOptions {
  readonly pool: PoolLike
  /** Where connections for heartbeats come from. @default the same pool */
  readonly beats?: PoolLike | null
  /** How its connections are shared. @default as if there were any number */
  readonly budget?: ConnectionBudget
  /** Settings for every transaction; null if the connections have them from their start. */
  readonly settings: string | null
  /** Gives users the settings of the server, for one transaction; null if the connections have no others. */
  readonly theirSettings: string | null
  /** A query that gives us our own, for the rest of such a transaction. */
  readonly ourSettings: string
  /** The isolation of transactions that ask for no other. @default that of the server */
  readonly isolation?: DefaultIsolation
  /** How these settings wait for locks. @default 'shortly' */
  readonly wait?: LockWait
  readonly random: () => number
  /** How long a call is tried again after conflicts. */
  readonly storageMs: number
  readonly monotonic: () => number
  /** Called with every statement of the plan as it is sent: for tests that compare. */
  readonly onStatement?: ((name: StatementName) => void) | undefined
  /** Says which right is missing, where one is. */
  readonly rights?: Rights
  /** Called with the hints of a committed transaction. */
  readonly onHints: (hints: readonly DetailedHint[]) => void
}

/** An int8 is a number to us: no time, token or position comes near to 2^53. Everything else is text, number or boolean. */
const parsers = {
  getTypeParser: (oid: number) => (oid === 20 || oid === 21 || oid === 23 ? Number : oid === 16 ? isTrue : asText),
}

function isTrue(text: string): boolean {
  return text === 't'
}

function asText(text: string): string {
  return text
}

/** A plan that is kept was made for the tables of then. It is made anew after a second, then ever less often. */
const plansMs = { first: 1_000, most: 60_000 }

export class Database implements Transactions {
  private readonly options: DatabaseOptions
  private readonly source: PoolSource
  private readonly storage: StorageLimit
  /** The timeouts that transactions have from their settings, or connections from their start. */
  private readonly usual: Times
  /** The timeouts that connections have got since then. */
  private readonly times = new WeakMap<ClientLike, Times>()
  private readonly names: StatementNames
  /** When the plans of a connection are made anew, and for how long they stay then. */
  private readonly plans = new WeakMap<ClientLike, { readonly until: number; readonly ms: number }>()
  /** Transactions that are lent, or wait for their turn, and how each is torn down. */
  private readonly lending = new Map<AbortController, Promise<unknown>>()
  private closed = false

  constructor(options: DatabaseOptions) {
    this.options = options
    const { pool, beats = null, budget = new ConnectionBudget(Infinity) } = options
    this.source = { pool, beats, budget }
    this.storage = new StorageLimit(options.storageMs)
    this.usual = timesFor(options.storageMs, options.wait ?? 'shortly')
    this.names = new StatementNames(options.monotonic)
  }

  /** Bounds all calls by that time, until the returned function is called. */
  limit(ms: number): () => void {
    return this.storage.limit(ms)
  }

  private get storageMs(): number {
    return this.storage.ms
  }

  /** The same database for calls that have a reserved connection. */
  reserved(use: Reserved): Transactions {
    return {
      alone: (work, end, options) => this.alone(work, end, options, use),
      transaction: (end, work, options) => this.transaction(end, work, options, use),
    }
  }

  /** One statement by itself, or several that do not depend on one another; each of ours writes once, and all or nothing. */
  alone<Answer>(
    work: (x: Execution) => Promise<Answer>,
    end: StatementName | null = null,
    options: AloneOptions = {},
    use: ConnectionUse = 'general',
  ): Promise<Answer> {
    const { settings, onStatement } = this.options
    const perform = async (pooled: PooledConnection, times: Times): Promise<Settled<Answer>> => {
      const x = new ConnectionExecution(pooled, this)
      // Without its transaction it would still be all or nothing.
      if (settings !== null) return this.inTransaction(pooled, x, times, end, work)
      const answer = await work(x)
      if (end !== null) onStatement?.(end)
      return { x, answer }
    }
    return this.attempt(perform, use, options)
  }

  /** All of the work or nothing. */
  transaction<Answer>(
    end: StatementName,
    work: (x: Execution) => Promise<Answer>,
    options: AloneOptions = {},
    use: ConnectionUse = 'general',
  ): Promise<Answer> {
    const perform = (pooled: PooledConnection, times: Times): Promise<Settled<Answer>> =>
      this.inTransaction(pooled, new ConnectionExecution(pooled, this, true), times, end, work)
    return this.attempt(perform, use, options)
  }

  /** A transaction on a connection that a user writes with. Their settings are as they would be elsewhere. */
  async lend<Answer>(work: (lent: Lent) => Promise<Answer>, options: LendOptions = {}): Promise<Answer> {
    this.assertOpen()
    const { signal } = options
    const torn = new AbortController()
    const tearDown = (): void => torn.abort(signal?.reason)
    signal?.addEventListener('abort', tearDown)
    if (signal?.aborted === true) tearDown()
    const lent = this.lendUntil(torn.signal, work, options)
    this.lending.set(torn, lent)
    try {
      const outcome = await lent
      if ('error' in outcome) throw outcome.error
      return outcome.result
    } finally {
      this.lending.delete(torn)
      signal?.removeEventListener('abort', tearDown)
    }
  }

  private lendUntil<Answer>(
    signal: AbortSignal,
    work: (lent: Lent) => Promise<Answer>,
    { isolation, patienceMs = patienceFor(this.storageMs), inTime = false }: LendOptions,
  ): Promise<Outcome<Answer>> {
    const { storageMs } = this
    const { theirSettings, isolation: usual = null } = this.options
    const ourSettings = `${this.options.ourSettings}, ${timesSql(timesFor(storageMs, 'long'), true)}`
    const connect = { signal, ms: storageMs }
    const turn = inTime ? connect : { signal }
    return this.once({ use: 'lent', patienceMs, turn, connect }, async (pooled) => {
      const x = new ConnectionExecution(pooled, this)
      const options = { theirSettings, ourSettings, isolation: isolation ?? usual, signal }
      const transaction = new LentTransaction(pooled, options)
      try {
        return { x, answer: await transaction.run(x, work) }
      } finally {
        if (theirSettings !== null && !pooled.isDestroyed) {
          this.times.delete(pooled.client)
          for (const text of resetSession) void pooled.query({ text }).catch(() => undefined)
        }
      }
    })
  }

  /** Refuses every call from here on, and tears down lent connections. False if it did so already. */
  close(): boolean {
    const wasOpen = !this.closed
    this.closed = true
    for (const torn of this.lending.keys()) torn.abort(closedError())
    return wasOpen
  }

  /**
   * Settles when nothing is lent any more. A transaction that was closed in the middle of its COMMIT may take as long as
   * that.
   */
  async returned(): Promise<void> {
    await Promise.allSettled(this.lending.values())
  }

  assertOpen(): void {
    if (this.closed) throw closedError()
  }

  /** Sends a statement on a connection. */
  send(pooled: PooledConnection, { text, name, plan }: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    const { onStatement } = this.options
    if (onStatement !== undefined) for (const planned of plan) onStatement(planned)
    const config = { text, values, types: parsers }
    const sent = this.names.areAllowed(pooled.client) ? { ...config, name } : config
    return pooled.query(sent).then(
      ({ rows }) => rows,
      (error: unknown) => {
        if (isUnknownStatement(sqlStateOf(error))) this.names.refused(pooled.client)
        this.options.rights?.note(error, text)
        throw error
      },
    )
  }

  private async inTransaction<Answer>(
    pooled: PooledConnection,
    x: ConnectionExecution,
    times: Times,
    end: StatementName | null,
    work: (x: Execution) => Promise<Answer>,
  ): Promise<Settled<Answer>> {
    const { settings, onStatement } = this.options
    const isUsual = areSame(times, this.usual)
    try {
      const all = settings === null || isUsual ? settings : `${settings}, ${timesSql(times, true)}`
      const begin = beginSql(this.options.isolation ?? null)
      for (const text of all === null ? [begin] : [begin, all]) {
        const sent = x.note(pooled.query({ text }))
        if (!pooled.pipeline) await sent
        else if (text === begin) x.begins(sent)
      }
      const answer = await work(x)
      x.assertWhole()
      if (end !== null) onStatement?.(end)
      const command = await commit(pooled)
      if (command === 'COMMIT') return { x, answer }
      throw new HoldfastError('BUG', `The server ended a transaction with ${command} although no statement had failed.`)
    } catch (error) {
      // A connection that is gone rolls back by itself.
      await pooled.query({ text: 'rollback' }).catch(() => undefined)
      throw isAborted(sqlStateOf(error)) ? (x.failure ?? error) : error
    }
  }

  /** Tries again after conflicts, as long as the storage timeout allows. */
  private async attempt<Answer>(
    work: (pooled: PooledConnection, times: Times) => Promise<Settled<Answer>>,
    use: ConnectionUse,
    { patient = true, mayWait = false, timeoutMs = Number.POSITIVE_INFINITY }: AloneOptions,
  ): Promise<Answer> {
    const { monotonic, random, wait = 'shortly' } = this.options
    const storageMs = Math.min(this.storageMs, timeoutMs)
    const times = timesFor(storageMs, mayWait && wait === 'shortly' ? 'a while' : wait)
    const ms = { ms: storageMs }
    const from = monotonic()
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.once({ use, patienceMs: patienceFor(storageMs), turn: ms, connect: ms }, async (pooled) => {
          const set = this.setTimes(pooled, times)
          if (!pooled.pipeline) await set
          return work(pooled, times)
        })
      } catch (error) {
        const state = sqlStateOf((error as { readonly cause?: unknown }).cause)
        const isWorthIt = isTransient(state) || isUnknownStatement(state)
        if (!isWorthIt || (!patient && isLocked(state)) || monotonic() - from > storageMs) throw error
        if (tries > 0) await pause(random() * Math.min(2 ** tries, 100))
      }
    }
  }

  private async once<Answer>(
    options: PoolUse,
    work: (pooled: PooledConnection) => Promise<Settled<Answer>>,
  ): Promise<Answer> {
    this.assertOpen()
    try {
      const { x, answer } = await withConnection(this.source, options, async (pooled) => {
        const renewed = this.renewPlans(pooled)
        if (!pooled.pipeline) await renewed
        return work(pooled)
      })
      if (x.hints.length > 0) this.options.onHints(x.hints)
      return answer
    } catch (error) {
      // The code that tore it down reports why.
      const { signal } = options.turn
      if (signal?.aborted === true && error === signal.reason) throw error
      throw (await this.options.rights?.named(translated(error))) ?? translated(error)
    }
  }

  /** Gives a connection that has its times from its start others, if these are. Goes out before the work, as well. */
  private async setTimes(pooled: PooledConnection, times: Times): Promise<void> {
    const { client } = pooled
    if (this.options.settings !== null || areSame(times, this.times.get(client) ?? this.usual)) return
    this.times.set(client, times)
    // Without them it would do its work all the same; the next borrower tries again.
    await pooled.query({ text: `select ${timesSql(times, false)}` }).catch(() => void this.times.delete(client))
  }

  /** Goes out before the work, which need not wait for it. Statistics that come later renew plans, too, but much later. */
  private async renewPlans(pooled: PooledConnection): Promise<void> {
    const now = this.options.monotonic()
    const known = this.plans.get(pooled.client)
    if (known !== undefined && now < known.until) return
    const ms = Math.min((known?.ms ?? plansMs.first / 2) * 2, plansMs.most)
    this.plans.set(pooled.client, { until: now + ms, ms })
    // A database that keeps no plans knows no such statement.
    if (known !== undefined) await pooled.query({ text: 'discard plans' }).catch(() => undefined)
  }
}

/**
 * The database gives up statements that take longer than the storage timeout, and reports that. This is for when it cannot.
 */
export function patienceFor(storageMs: number): number {
  return storageMs + 1_000
}

interface Settled<Answer> {
  readonly x: Execution
  readonly answer: Answer
}

class ConnectionExecution implements Execution {
  readonly hints: DetailedHint[] = []
  private readonly pooled: PooledConnection
  private readonly database: Database
  private readonly isWhole: boolean
  private last: Promise<unknown> = Promise.resolve()
  /** The answer that must come before any write, and whether a statement waits for it; null once it is there. */
  private begun: Promise<unknown> | null = null
  private isHeldBack = false
  /**
   * The first failure. Statements that are sent together fail together, and a caller of Promise.all may get any of their
   * errors.
   */
  failure: unknown

  /** With `isWhole`, nothing is written outside of the transaction. */
  constructor(pooled: PooledConnection, database: Database, isWhole = false) {
    this.pooled = pooled
    this.database = database
    this.isWhole = isWhole
  }

  /**
   * The transaction was requested. A `begin` can be refused like every statement, by a timeout or by a cancel request, and
   * the statements that follow it on the wire would then be executed, and committed, each by itself. So reads and locks are
   * sent with it, and writes once it is known to be open. Mostly that is known already: a transaction that writes has read
   * before.
   */
  begins(sent: Promise<unknown>): void {
    if (!this.isWhole) return
    this.begun = sent
    const known = (): void => void (this.begun = null)
    sent.then(known, () => undefined)
  }

  /** Throws the first failure: it also voids the results of reads without a lock. */
  assertWhole(): void {
    if (this.isWhole && this.failure !== undefined) throw this.failure as Error
  }

  execute(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    if (this.pooled.pipeline) {
      const send = (): Promise<readonly Row[]> => this.note(this.database.send(this.pooled, statement, values))
      // Behind what waits everything waits: statements keep their order.
      this.isHeldBack = this.begun !== null && (statement.writes || this.isHeldBack)
      return this.isHeldBack && this.begun !== null ? this.begun.then(send) : send()
    }
    // A library that takes one statement at a time gets one at a time.
    const answer = this.note(this.last.then(() => this.database.send(this.pooled, statement, values)))
    this.last = answer.catch(() => undefined)
    return answer
  }

  /** Remembers how it fails, if nothing failed before. */
  note<Answer>(sent: Promise<Answer>): Promise<Answer> {
    sent.catch((error: unknown) => (this.failure ??= error))
    return sent
  }
}

function closedError(): HoldfastError {
  return new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
