// The Postgres store. Every method executes its statement plan, in as few round trips as the answers allow. Runs of several
// shards are separated here, each shard in a transaction of its own.

import type { Fate } from '../../core/model/message.ts'
import type { Run } from '../../core/model/run.ts'
import type { Transition } from '../../core/model/transition.ts'
import type {
  BatchOptions,
  Beat,
  BeatRequest,
  Busy,
  Capabilities,
  Change,
  InvariantCheck,
  ChoresDone,
  Claimed,
  ClaimRequest,
  Committed,
  DeadLetter,
  DeadLetterFilter,
  Delivered,
  FeedEnd,
  ProjectionAnswer,
  ProjectionCommand,
  ProjectionRow,
  ReleasedLease,
  Hint,
  KeyCount,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  Page,
  PayloadRewrite,
  PayloadsRewritten,
  Rescued,
  RescueRequest,
  RunFilter,
  RunStart,
  StartBusy,
  Started,
  ControlResult,
  ControlCommand,
  Store,
  StoreAdmin,
  StoreEndHints,
  StoreLimits,
  StoreProjections,
  StoreSecrets,
  StoreTransactions,
  TransactOptions,
  TransactionStore,
} from '../../store.ts'
import { createCheckQueries, type CheckQueries } from './read/check.ts'
import { createChoreQueries, type ChoreQueries } from './exchange/chores.ts'
import { createClaimQueries, type ClaimQueries } from './claim/claim.ts'
import { claimInTurn } from './claim/claim-in-turn.ts'
import { createShardLookQueries, type ShardLookQueries } from './claim/shard-look.ts'
import type { ConnectionBudget } from './connection/connection-budget.ts'
import { createCommitQueries } from './commit/commit.ts'
import type { Database } from './connection/database.ts'
import { createDeadLetterQueries, type DeadLetterQueries } from './read/dead-letters.ts'
import { createPayloadQueries, type PayloadQueries } from './read/payloads.ts'
import { createDeliverQueries, type DeliverQueries } from './exchange/deliver.ts'
import type { Dialect } from './dialect.ts'
import { createExchangeRunner } from './exchange/exchange.ts'
import type { Execution, DetailedHint, Transactions } from './execution.ts'
import { createKeyQueries, type KeyQueries } from './commit/keys.ts'
import { createFeedQueries, type FeedQueries } from './read/feed.ts'
import { createFindQueries, type FindQueries } from './read/find.ts'
import { createLockedCommitQueries, type LockedCommitQueries } from './commit/locked-commit.ts'
import { createProjectionQueries, type ProjectionQueries } from './commit/projections.ts'
import { createReadQueries, type ReadQueries } from './read/read.ts'
import { refusedOthers, type RefusedOthers } from './exchange/refused-others.ts'
import { createRescueQueries, type RescueQueries } from './claim/rescue.ts'
import type { RefusedRescue } from './schema/row-security.ts'
import { createSessionQueries, type SessionQueries } from './claim/sessions.ts'
import { sqlHandleOf } from '../sql-handle.ts'
import type { Lent } from './connection/lent-transaction.ts'
import { PostgresTransactionStore, type NotifyInTransaction } from './transaction-store.ts'
import { isOfData, translated } from './connection/sql-state.ts'
import { childrenStarting } from './start/ordered-start.ts'
import { Batches } from './commit/batches.ts'
import { createStartQueries, type StartQueries } from './start/start.ts'
import { createControlQueries, type ControlQueries } from './exchange/control.ts'

/** The parts of a store; `openPostgresStore` puts them together. @internal */
export interface PostgresStoreParts {
  readonly database: Database
  /** @internal */
  readonly dialect: Dialect
  readonly monotonic: () => number
  readonly storageMs?: number
  /** The name of the schema. */
  readonly namespace: string
  /** From 0 to less than 1. */
  readonly random: () => number
  /** Creates or updates the schema. */
  readonly migrate: () => Promise<void>
  /** Reads the key from which the secrets of completion tokens are derived. */
  readonly tokenKey: () => Promise<string>
  readonly hints: HintChannel
  /** A policy of row-level security refuses to change this run. */
  readonly onRefused?: (runId: string, error: unknown) => void
  /** Such policies refuse to take over, or to end, these runs. */
  readonly onRescueRefused?: (refused: RefusedRescue) => void
  /** The places of connections that the user's own library lends. @default there is no end of them */
  readonly libraries?: ConnectionBudget
  /** Called once, when the store is closed. */
  readonly onClose: () => Promise<void>
}

/** How hints come and go. @internal */
export interface HintChannel {
  /** Other processes are being heard. */
  readonly hears: boolean
  /** Receives hints, of this process and of others. */
  listen(onHint: (hint: Hint) => void): Promise<() => void>
  /** Notifies other processes inside a transaction of a user. */
  readonly notifyInTransaction: NotifyInTransaction
  /** Calls `notice` with the same hints, at once, also while no listener is registered. */
  attend(notice: (hints: readonly DetailedHint[]) => void): void
  expectEnds(isExpecting: boolean): boolean
}

/** A check reads everything, and there may be millions of runs: only the doctor waits for it. */
const longestCheckMs = 60 * 60_000

export class PostgresStore
  implements Store, StoreAdmin, StoreEndHints, StoreLimits, StoreProjections, StoreSecrets, StoreTransactions
{
  readonly capabilities: Capabilities
  private readonly parts: PostgresStoreParts
  private readonly db: Database
  /** The same, with a connection that is kept for heartbeats. */
  private readonly beats: Transactions
  readonly dialect: Dialect
  /** @internal */
  readonly startQueries: StartQueries
  /** @internal */
  readonly keyQueries: KeyQueries
  private readonly claimQueries: ClaimQueries
  private readonly shardLookQueries: ShardLookQueries
  /** @internal */
  readonly lockedCommitQueries: LockedCommitQueries
  /** @internal */
  readonly deliverQueries: DeliverQueries
  /** @internal */
  readonly controlQueries: ControlQueries
  /** @internal */
  readonly refusedOthers: RefusedOthers
  /** @internal */
  readonly readQueries: ReadQueries
  private readonly feedQueries: FeedQueries
  /** @internal */
  readonly projectionQueries: ProjectionQueries
  private readonly sessionQueries: SessionQueries
  private readonly rescueQueries: RescueQueries
  private readonly choreQueries: ChoreQueries
  private readonly findQueries: FindQueries
  private readonly deadLetterQueries: DeadLetterQueries
  private readonly payloadQueries: PayloadQueries
  private readonly checkQueries: CheckQueries
  private readonly batches: Batches

  /** @internal */
  constructor(parts: PostgresStoreParts) {
    const { database, dialect, monotonic, hints } = parts
    const onRefused = parts.onRefused ?? (() => undefined)
    this.refusedOthers = refusedOthers(dialect, { monotonic, onRefused })
    const exchange = createExchangeRunner(dialect, this.refusedOthers)
    this.parts = parts
    this.db = database
    this.beats = database.reserved('heartbeat')
    this.dialect = dialect
    this.startQueries = createStartQueries(dialect)
    this.keyQueries = createKeyQueries(dialect)
    this.claimQueries = createClaimQueries(dialect, { monotonic, random: parts.random, onRefused })
    this.shardLookQueries = createShardLookQueries(dialect)
    this.readQueries = createReadQueries(dialect)
    this.lockedCommitQueries = createLockedCommitQueries(dialect, exchange, childrenStarting(this))
    this.deliverQueries = createDeliverQueries(dialect, exchange)
    this.controlQueries = createControlQueries(dialect, exchange)
    this.feedQueries = createFeedQueries(dialect, monotonic)
    this.projectionQueries = createProjectionQueries(dialect)
    this.sessionQueries = createSessionQueries(dialect, monotonic)
    this.rescueQueries = createRescueQueries(dialect, exchange, {
      monotonic,
      refusedOthers: this.refusedOthers,
      onRefused: parts.onRescueRefused ?? (() => undefined),
    })
    this.choreQueries = createChoreQueries(dialect, exchange, this.refusedOthers)
    this.findQueries = createFindQueries(dialect)
    this.deadLetterQueries = createDeadLetterQueries(dialect)
    this.payloadQueries = createPayloadQueries(dialect)
    this.checkQueries = createCheckQueries(dialect)
    this.batches = new Batches(
      this,
      database,
      createCommitQueries(dialect, this.lockedCommitQueries, this.refusedOthers),
    )
    hints.attend((hints) => {
      this.claimQueries.notice(hints)
      this.rescueQueries.notice(hints)
    })
    this.capabilities = {
      get notifies() {
        return hints.hears
      },
      multiProcess: true,
      shards: dialect.shards,
      transactions: true,
      projections: true,
      namespace: parts.namespace,
      ...(parts.storageMs === undefined ? {} : { storageMs: parts.storageMs }),
    }
  }

  async migrate(): Promise<void> {
    this.db.assertOpen()
    await this.parts.migrate()
  }

  async start(runs: readonly RunStart[], options?: BatchOptions): Promise<readonly (Started | StartBusy)[]> {
    return this.batches.start(runs, options)
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const { shards, isSpread } = this.dialect
    if (request.runId !== undefined) return this.claimQueries.claimByName(this.db, request.runId, request)
    if (shards === 1) return this.claimQueries.claim(this.db, 0, request)
    return claimInTurn({
      shards,
      random: this.parts.random,
      look: isSpread ? this.shardLookQueries.look(this.db, request) : null,
      claim: (shard, limit) => this.claimQueries.claim(this.db, shard, { ...request, limit }),
      limit: request.limit,
    })
  }

  async load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    return this.read(requests, (x) => this.readQueries.load(x, requests, mostBytes))
  }

  async commit(transitions: readonly Transition[], options?: BatchOptions): Promise<readonly Committed[]> {
    return this.batches.commit(transitions, options)
  }

  async deliver(
    messages: readonly (NewMessage | NewBroadcast)[],
    options?: BatchOptions,
  ): Promise<readonly (Delivered | Busy)[]> {
    return this.batches.deliver(messages, options)
  }

  async control(requests: readonly ControlCommand[]): Promise<readonly (ControlResult | Busy)[]> {
    return this.batches.control(requests)
  }

  async beat(request: BeatRequest): Promise<Beat> {
    return this.sessionQueries.beat(this.beats, request)
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    return this.rescueQueries.rescue(this.db, request)
  }

  async doChores(): Promise<ChoresDone> {
    return this.choreQueries.doOne(this.db)
  }

  async release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]> {
    return this.batches.release(leases)
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    return this.read(runIds, (x) => this.readQueries.readRuns(x, runIds))
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    return this.feedQueries.readChanges(this.db, after, limit)
  }

  async projections(): Promise<readonly ProjectionRow[]> {
    return this.db.alone((x) => this.projectionQueries.readAll(x))
  }

  async commandProjection(command: ProjectionCommand): Promise<ProjectionAnswer> {
    return this.db.transaction('projection.commit', (x) => this.projectionQueries.command(x, command))
  }

  async feedEnd(): Promise<FeedEnd> {
    return this.db.alone((x) => this.feedQueries.readEnd(x))
  }

  async find(filter: RunFilter, page: Page): Promise<readonly Run[]> {
    return this.db.alone((x) => this.findQueries.find(x, filter, page))
  }

  async count(filter: RunFilter, atMost: number): Promise<number> {
    return this.db.alone((x) => this.findQueries.count(x, filter, atMost))
  }

  async deadLetters(filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]> {
    return this.db.alone((x) => this.deadLetterQueries.find(x, filter, page))
  }

  async settleDeadLetter(letter: Pick<DeadLetter, 'runId' | 'id'>, fate: Fate): Promise<boolean> {
    return this.db.alone((x) => this.deadLetterQueries.settle(x, letter, fate), 'dead.commit')
  }

  async otherKeys(keys: readonly string[], atMost: number): Promise<readonly KeyCount[]> {
    return this.db.alone((x) => this.payloadQueries.otherKeys(x, keys, atMost))
  }

  async rewritePayloads(request: PayloadRewrite): Promise<PayloadsRewritten> {
    return this.db.transaction('rewritePayloads.commit', (x) => this.payloadQueries.rewrite(x, request))
  }

  async tokenKey(): Promise<string> {
    this.db.assertOpen()
    return this.parts.tokenKey()
  }

  async doctor(): Promise<readonly InvariantCheck[]> {
    // It reads everything, in plans and in a time of its own.
    const lent = <Answer>(work: (x: Execution) => Promise<Answer>): Promise<Answer> =>
      this.db.lend(({ x }) => work(x), { patienceMs: longestCheckMs, inTime: true })
    try {
      return await lent((x) => this.checkQueries.check(x)).catch(async (error: unknown) => {
        if (!isOfData(error)) throw error
        // A row that was tampered with fails a statement for all: it is found, and the others are checked without it.
        const damaged = await lent((x) => this.checkQueries.damaged(x))
        if (damaged.length === 0) throw error
        return lent((x) => this.checkQueries.check(x, damaged))
      })
    } catch (error) {
      throw translated(error)
    }
  }

  inTransaction(handle: unknown): TransactionStore {
    this.db.assertOpen()
    return new PostgresTransactionStore(this, sqlHandleOf(handle), this.parts.hints.notifyInTransaction)
  }

  async transact<Result>(
    work: (handle: unknown, transactionStore: TransactionStore) => Promise<Result>,
    options?: TransactOptions,
  ): Promise<Result> {
    const { notifyInTransaction } = this.parts.hints
    const lent = ({ client, handle, takeBack }: Lent): Promise<Result> =>
      work(client, new PostgresTransactionStore(this, handle, notifyInTransaction, takeBack))
    return this.db.lend(lent, options)
  }

  async reserve(signal: AbortSignal): Promise<() => void> {
    this.db.assertOpen()
    return (await this.parts.libraries?.take('lent', { signal })) ?? (() => undefined)
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.db.assertOpen()
    return this.parts.hints.listen(onHint)
  }

  expectEnds(isExpecting: boolean): boolean {
    return this.parts.hints.expectEnds(isExpecting)
  }

  limit(ms: number): () => void {
    return this.db.limit(ms)
  }

  async close(): Promise<void> {
    if (!this.db.close()) return
    await this.parts.onClose()
  }

  private async read<Answer>(
    requested: readonly unknown[],
    work: (x: Execution) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    this.db.assertOpen()
    return requested.length === 0 ? [] : this.db.alone(work)
  }
}
