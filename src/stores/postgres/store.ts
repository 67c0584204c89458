// The Postgres store. Every method executes its statement plan; what goes out together goes in as few round trips as the
// answers allow. Runs of several shards are told apart here, each shard in a transaction of its own.

import type { Fate } from '../../core/message.ts'
import type { Run } from '../../core/run.ts'
import type { Transition } from '../../core/transition.ts'
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
  GivenBack,
  Fresh,
  Hint,
  KeyCount,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  NewRun,
  Page,
  PayloadRewrite,
  PayloadsRewritten,
  Rescued,
  RescueRequest,
  RunFilter,
  StartBusy,
  Started,
  Steered,
  SteerRequest,
  Store,
  StoreAdmin,
  StoreLimits,
  StoreSecrets,
  StoreTransactions,
  TransactOptions,
  TransactionStore,
} from '../../store.ts'
import { checking, type Checking } from './checking.ts'
import { chores, type Chores } from './chores.ts'
import { claiming, type Claiming } from './claiming.ts'
import type { ConnectionBudget } from './connection-budget.ts'
import { committing } from './committing.ts'
import type { Database } from './database.ts'
import { deadLetters, type DeadLetters } from './dead-letters.ts'
import { storedPayloads, type StoredPayloads } from './payloads.ts'
import { delivering, type Delivering } from './delivering.ts'
import type { Dialect } from './dialect.ts'
import { exchanging } from './exchanging.ts'
import type { Execution, Told, Transactions } from './execution.ts'
import { idempotency, type Idempotency } from './idempotency.ts'
import { feeding, type Feeding } from './feeding.ts'
import { finding, type Finding } from './finding.ts'
import { judging, type Judging } from './judging.ts'
import { reading, type Reading } from './reading.ts'
import { refusedOthers, type RefusedOthers } from './refused-others.ts'
import { rescuing, type Rescuing } from './rescuing.ts'
import type { RefusedRescue } from './row-security.ts'
import { sessions, type Sessions } from './sessions.ts'
import { sqlHandleOf } from '../sql-handle.ts'
import type { Lent } from './lent-transaction.ts'
import { PostgresWithin, type TellWithin } from './within.ts'
import { isOfData, translated } from './sql-state.ts'
import { childrenStarting } from './ordered-starting.ts'
import { Batches } from './batches.ts'
import { starting, type Starting } from './starting.ts'
import { steering, type Steering } from './steering.ts'

/** What a store is built from; `openPostgresStore` puts it together. */
export interface PostgresStoreParts {
  readonly database: Database
  readonly dialect: Dialect
  readonly monotonic: () => number
  readonly storageMs?: number
  /** The name of the schema. */
  readonly namespace: string
  /** From 0 to less than 1. */
  readonly random: () => number
  /** Creates or updates the schema. */
  readonly migrate: () => Promise<void>
  /** Reads what the secrets of tokens are made with. */
  readonly tokenKey: () => Promise<string>
  readonly hearing: Hearing
  /** A policy of row-level security lets nobody change this run. */
  readonly onRefused?: (runId: string, error: unknown) => void
  /** Such policies let nobody take over, or end, these runs. */
  readonly onRescueRefused?: (refused: RefusedRescue) => void
  /** The places of connections that the user's own library lends. @default there is no end of them */
  readonly libraries?: ConnectionBudget
  /** Called once, when the store is closed. */
  readonly onClose: () => Promise<void>
}

/** How hints come and go. */
export interface Hearing {
  /** Other processes are being heard. */
  readonly hears: boolean
  /** Told of hints, from here and from elsewhere. */
  listen(onHint: (hint: Hint) => void): Promise<() => void>
  /** Tells others inside a transaction of a user. */
  readonly tellWithin: TellWithin
  /** Told of the same, at once and whether anybody listens or not. */
  attend(notice: (hints: readonly Told[]) => void): void
}

/** A check reads everything, and there may be millions of runs: nobody waits for it but the doctor. */
const longestCheckMs = 60 * 60_000

export class PostgresStore implements Store, StoreAdmin, StoreLimits, StoreSecrets, StoreTransactions {
  readonly capabilities: Capabilities
  private readonly parts: PostgresStoreParts
  private readonly db: Database
  /** The same, with a connection that is kept for heartbeats. */
  private readonly beats: Transactions
  readonly dialect: Dialect
  readonly starting: Starting
  readonly idempotency: Idempotency
  private readonly claiming: Claiming
  readonly judging: Judging
  readonly delivering: Delivering
  readonly steering: Steering
  readonly refusedOthers: RefusedOthers
  readonly reading: Reading
  private readonly feeding: Feeding
  private readonly sessions: Sessions
  private readonly rescuing: Rescuing
  private readonly chores: Chores
  private readonly finding: Finding
  private readonly dead: DeadLetters
  private readonly payloads: StoredPayloads
  private readonly checking: Checking
  private readonly batches: Batches

  constructor(parts: PostgresStoreParts) {
    const { database, dialect, monotonic, hearing } = parts
    const onRefused = parts.onRefused ?? (() => undefined)
    this.refusedOthers = refusedOthers(dialect, { monotonic, onRefused })
    const exchange = exchanging(dialect, this.refusedOthers)
    this.parts = parts
    this.db = database
    this.beats = database.reserved('heartbeat')
    this.dialect = dialect
    this.starting = starting(dialect)
    this.idempotency = idempotency(dialect)
    this.claiming = claiming(dialect, { monotonic, onRefused })
    this.reading = reading(dialect)
    this.judging = judging(dialect, exchange, childrenStarting(this))
    this.delivering = delivering(dialect, exchange)
    this.steering = steering(dialect, exchange, this.idempotency)
    this.feeding = feeding(dialect, monotonic)
    this.sessions = sessions(dialect, monotonic)
    this.rescuing = rescuing(dialect, exchange, {
      monotonic,
      refusedOthers: this.refusedOthers,
      onRefused: parts.onRescueRefused ?? (() => undefined),
    })
    this.chores = chores(dialect, exchange, this.refusedOthers)
    this.finding = finding(dialect)
    this.dead = deadLetters(dialect)
    this.payloads = storedPayloads(dialect)
    this.checking = checking(dialect)
    this.batches = new Batches(this, database, committing(dialect, this.judging, this.refusedOthers))
    hearing.attend((hints) => {
      this.claiming.notice(hints)
      this.rescuing.notice(hints)
    })
    this.capabilities = {
      get notifies() {
        return hearing.hears
      },
      multiProcess: true,
      shards: dialect.shards,
      transactions: true,
      namespace: parts.namespace,
      ...(parts.storageMs === undefined ? {} : { storageMs: parts.storageMs }),
    }
  }

  async migrate(): Promise<void> {
    this.db.assertOpen()
    await this.parts.migrate()
  }

  async start(runs: readonly NewRun[], options?: BatchOptions): Promise<readonly (Started | StartBusy)[]> {
    return this.batches.start(runs, options)
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const { shards } = this.dialect
    if (shards === 1) return this.claiming.claim(this.db, 0, request)
    return this.claimInTurn(request)
  }

  async load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    return this.read(requests, (x) => this.reading.load(x, requests, mostBytes))
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

  async steer(requests: readonly SteerRequest[]): Promise<readonly (Steered | Busy)[]> {
    return this.batches.steer(requests)
  }

  async beat(request: BeatRequest): Promise<Beat> {
    return this.sessions.beat(this.beats, request)
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    return this.rescuing.rescue(this.db, request)
  }

  async doChores(): Promise<ChoresDone> {
    return this.chores.doOne(this.db)
  }

  async release(leases: readonly GivenBack[]): Promise<readonly GivenBack[]> {
    return this.batches.release(leases)
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    return this.read(runIds, (x) => this.reading.readRuns(x, runIds))
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    return this.feeding.readChanges(this.db, after, limit)
  }

  async find(filter: RunFilter, page: Page): Promise<readonly Run[]> {
    return this.db.alone((x) => this.finding.find(x, filter, page))
  }

  async count(filter: RunFilter, atMost: number): Promise<number> {
    return this.db.alone((x) => this.finding.count(x, filter, atMost))
  }

  async deadLetters(filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]> {
    return this.db.alone((x) => this.dead.find(x, filter, page))
  }

  async settleDeadLetter(letter: Pick<DeadLetter, 'runId' | 'id'>, fate: Fate): Promise<boolean> {
    return this.db.alone((x) => this.dead.settle(x, letter, fate), 'dead.commit')
  }

  async otherKeys(keys: readonly string[], atMost: number): Promise<readonly KeyCount[]> {
    return this.db.alone((x) => this.payloads.otherKeys(x, keys, atMost))
  }

  async rewritePayloads(request: PayloadRewrite): Promise<PayloadsRewritten> {
    return this.db.transaction('rewritePayloads.commit', (x) => this.payloads.rewrite(x, request))
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
      return await lent((x) => this.checking.check(x)).catch(async (error: unknown) => {
        if (!isOfData(error)) throw error
        // A row that somebody has changed fails a statement for all: it is found, and the others are checked without it.
        const damaged = await lent((x) => this.checking.damaged(x))
        if (damaged.length === 0) throw error
        return lent((x) => this.checking.check(x, damaged))
      })
    } catch (error) {
      throw translated(error)
    }
  }

  within(handle: unknown): TransactionStore {
    this.db.assertOpen()
    return new PostgresWithin(this, sqlHandleOf(handle), this.parts.hearing.tellWithin)
  }

  async transact<Result>(
    work: (handle: unknown, within: TransactionStore) => Promise<Result>,
    options?: TransactOptions,
  ): Promise<Result> {
    const { tellWithin } = this.parts.hearing
    const lent = ({ client, handle, takeBack }: Lent): Promise<Result> =>
      work(client, new PostgresWithin(this, handle, tellWithin, takeBack))
    return this.db.lend(lent, options)
  }

  async reserve(signal: AbortSignal): Promise<() => void> {
    this.db.assertOpen()
    return (await this.parts.libraries?.take('lent', { signal })) ?? (() => undefined)
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.db.assertOpen()
    return this.parts.hearing.listen(onHint)
  }

  limit(ms: number): () => void {
    return this.db.limit(ms)
  }

  async close(): Promise<void> {
    if (!this.db.close()) return
    await this.parts.onClose()
  }

  /**
   * Asks one shard after the other, beginning with any, so that no shard goes first everywhere, until there are enough. If one of
   * them fails, what the others gave is answered: it is leased, and nobody else would know of it.
   */
  private async claimInTurn(request: ClaimRequest): Promise<Claimed> {
    const { shards } = this.dialect
    const first = Math.floor(this.parts.random() * shards)
    const runs: Run[] = []
    const fresh: Fresh[] = []
    let more = false
    let nextDue: number | null = null
    let now = 0
    for (let turn = 0; turn < shards; turn += 1) {
      const limit = request.limit - runs.length
      const shard = (first + turn) % shards
      const asked = this.claiming.claim(this.db, shard, { ...request, limit })
      const claimed = await asked.catch((error: unknown) => {
        if (runs.length === 0) throw error
        return null
      })
      if (claimed === null) {
        more = true
        break
      }
      runs.push(...claimed.runs)
      fresh.push(...(claimed.fresh ?? []))
      more ||= claimed.more
      now = claimed.now
      if (claimed.nextDue !== null) nextDue = Math.min(nextDue ?? claimed.nextDue, claimed.nextDue)
      const isFull = request.limit > 0 && runs.length === request.limit
      if (isFull && turn < shards - 1) {
        // What the others have was not asked: the next claim does.
        more = true
        break
      }
    }
    const all = { runs, more, nextDue, now }
    return fresh.length === 0 ? all : { ...all, fresh }
  }

  private async read<Answer>(
    asked: readonly unknown[],
    work: (x: Execution) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    this.db.assertOpen()
    return asked.length === 0 ? [] : this.db.alone(work)
  }
}
