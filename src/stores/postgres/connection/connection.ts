// A connection while we have it from its pool. Only its borrower hears when it breaks, and an error without a listener ends
// the process. A network may also fail silently: then no answer ever comes, and no timeout of the database helps, because no
// request reaches it. So a connection on which no answer comes for as long as the database itself may take is torn down, and
// all statements on it fail as if it had broken.

import { formatMs } from '../../../core/definition/duration.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { cancelStatement, type Cancellable } from './cancel-request.ts'
import type { ConnectionBudget, ConnectionUse, WaitLimit } from './connection-budget.ts'
import type { Row, Value } from '../execution.ts'
import { isLost, sqlStateOf, unanswered } from './sql-state.ts'

/** The part of a client of `pg` that we use. */
export interface ClientLike {
  /** True if statements may be sent without waiting for the answers of those before. */
  readonly pipeline?: boolean
  query(config: QueryConfig): Promise<QueryResult>
  /** Gives it back; with an error, it is not used again. */
  release(error?: Error | boolean): void
  on?(event: 'error' | 'end', heard: (error: Error) => void): unknown
  off?(event: 'error' | 'end', heard: (error: Error) => void): unknown
  /** The transaction status that the server last reported: `I` if there is none. */
  getTransactionStatus?(): string | null
  /** Its socket. */
  readonly connection?: { readonly stream?: { destroy(error?: Error): unknown } }
}

interface QueryResult {
  readonly rows: readonly Row[]
  readonly command: string
}

/** The part of a `Pool` of `pg` that we use. */
export interface PoolLike {
  /** How many connections it opens at most, as far as it is known. */
  readonly options?: { readonly max?: number | undefined }
  connect(): Promise<ClientLike>
  end(): Promise<void>
  on?(event: 'connect', connected: (client: ClientLike) => void): unknown
  off?(event: 'connect', connected: (client: ClientLike) => void): unknown
}

interface QueryConfig {
  readonly text: string
  readonly values?: readonly Value[]
  readonly name?: string
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown }
}

export class PooledConnection {
  readonly client: ClientLike
  private readonly patienceMs: number
  private unanswered = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  /** It was torn down on purpose. */
  isDestroyed = false

  constructor(client: ClientLike, patienceMs: number) {
    this.client = client
    this.patienceMs = patienceMs
  }

  /** True if statements may be sent without waiting for the answers of those before. */
  get pipeline(): boolean {
    return this.client.pipeline === true
  }

  async query(config: QueryConfig): Promise<QueryResult> {
    this.unanswered += 1
    this.timer ??= setTimeout(this.tearDown, this.patienceMs)
    try {
      return await this.client.query(config)
    } finally {
      this.unanswered -= 1
      if (this.unanswered > 0) this.timer?.refresh()
      else this.rest()
    }
  }

  /**
   * Tears it down, and any open transaction with it. Settles when its driver has noticed: the pool emits later errors, and
   * may have no listener.
   */
  async destroy(): Promise<void> {
    const { client } = this
    this.isDestroyed = true
    this.rest()
    const ended = endOf(client)
    client.connection?.stream?.destroy()
    await Promise.all([ended, cancelStatement(client as Cancellable)])
  }

  private rest(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  /** The driver would send a farewell first, and wait for statements under way. */
  private readonly tearDown = (): void => {
    const silent = new Error(`nothing was answered for ${this.patienceMs} ms`)
    this.client.connection?.stream?.destroy(silent)
  }
}

/** Where connections come from, and how many. */
export interface PoolSource {
  readonly pool: PoolLike
  /** Where those for heartbeats come from. @default where all others do */
  readonly beats?: PoolLike | null
  readonly budget: ConnectionBudget
}

export interface PoolUse {
  readonly use: ConnectionUse
  /** How long the connection may be silent after a request. */
  readonly patienceMs: number
  /** How long to wait for a place in the budget, and then for the pool. */
  readonly turn: WaitLimit
  readonly connect: WaitLimit
}

/** Works with a connection from a pool. One whose state is unknown is not used again. */
export async function withConnection<Answer>(
  { pool, beats, budget }: PoolSource,
  { use, patienceMs, turn, connect }: PoolUse,
  work: (pooled: PooledConnection) => Promise<Answer>,
): Promise<Answer> {
  const taken = budget.take(use, turn)
  const giveBack = typeof taken === 'function' ? taken : await taken
  try {
    const client = await connected(use === 'heartbeat' ? (beats ?? pool) : pool, connect)
    expectErrors(client)
    const pooled = new PooledConnection(client, patienceMs)
    let broken: Error | undefined
    try {
      return await work(pooled)
    } catch (error) {
      // Without a state it is not the database that answered, and the state of the connection is unknown.
      const source: unknown = error instanceof HoldfastError ? error.cause : error
      const state = sqlStateOf(source)
      if (isLost(state) || (state === undefined && source !== undefined)) broken = source as Error
      throw error
    } finally {
      client.release(broken ?? unusable(pooled))
      client.off?.('error', ignore)
    }
  } finally {
    giveBack()
  }
}

/**
 * Why this connection must not be used again: the next borrower would send its statements inside of a transaction that was
 * left open.
 */
function unusable({ client, isDestroyed }: PooledConnection): Error | undefined {
  if (isDestroyed) return new Error('torn down')
  const status = client.getTransactionStatus?.()
  return status === 'T' || status === 'E' ? new Error('left in the middle of a transaction') : undefined
}

/** A pool that answers in time, if only to say that it has nothing to give. */
export function inTime(pool: PoolLike, ms: number): PoolLike {
  return { connect: () => connected(pool, { ms }), end: () => pool.end() }
}

/** Takes a connection from a pool. One that comes after its time is given back at once. */
function connected(pool: PoolLike, { ms, signal }: WaitLimit): Promise<ClientLike> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const fail = (error: unknown): void => {
      isOver = true
      settle()
      reject(error)
    }
    const onAbort = (): void => fail(signal?.reason)
    const timer = ms === undefined ? undefined : setTimeout(() => fail(noConnection(ms)), ms)
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) return onAbort()
    Promise.resolve(pool.connect()).then(
      (client) => {
        if (isOver) return client.release()
        settle()
        resolve(client)
      },
      (error: unknown) => {
        if (!isOver) fail(unanswered(error))
      },
    )
  })
}

function noConnection(ms: number): HoldfastError {
  const message =
    `The pool has given no connection for ${formatMs(ms)}, the storage timeout. Its connections may all be in use: raise its ` +
    'size, or look for what does not give them back.'
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { waitedMs: ms } })
}

/** Settles when the driver says that a connection has ended; also if it says nothing. */
function endOf(client: ClientLike): Promise<void> {
  if (client.on === undefined || client.connection?.stream === undefined) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 1_000)
    client.on?.('end', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/**
 * An error of a connection without a listener ends the process, and it may come with the very answer that makes the
 * connection: a listener that is added after the promise settles would come too late.
 */
export function expectErrors(client: Pick<ClientLike, 'on'>): void {
  client.on?.('error', ignore)
}

/** Statements under way fail with the same error. */
function ignore(): void {}
