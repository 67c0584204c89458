// The Postgres store. Every method executes its statement plan; what goes out together goes in as few round trips as the
// answers allow. Runs of several shards are told apart here, each shard in a transaction of its own.

import { bug, isHoldfastError } from '../../core/error.ts'
import type { Fate } from '../../core/message.ts'
import type { Lease, Run } from '../../core/run.ts'
import type { Transition } from '../../core/transition.ts'
import type {
  Beat,
  BeatRequest,
  Capabilities,
  Change,
  Checked,
  Claimed,
  ClaimRequest,
  Committed,
  DeadLetter,
  DeadLetterFilter,
  Delivered,
  Fresh,
  Hint,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  NewRun,
  Page,
  Rescued,
  RescueRequest,
  RunFilter,
  Started,
  Steered,
  SteerRequest,
  Store,
  StoreAdmin,
  StoreTransactions,
  Within,
} from '../../store.ts'
import { checking, type Checking } from './checking.ts'
import { claiming, type Claiming } from './claiming.ts'
import { committing, type Committing } from './committing.ts'
import type { ClientLike, Database } from './database.ts'
import { deadLetters, type DeadLetters } from './dead-letters.ts'
import { delivering, isLetter, wantsOfSending, type Delivering } from './delivering.ts'
import type { Dialect } from './dialect.ts'
import { exchanging } from './exchanging.ts'
import type { Execution, Told } from './execution.ts'
import { idempotency, type Idempotency } from './idempotency.ts'
import { feeding, type Feeding } from './feeding.ts'
import { finding, type Finding } from './finding.ts'
import { judging, type Judging } from './judging.ts'
import { reading, type Reading } from './reading.ts'
import { rescuing, type Rescuing } from './rescuing.ts'
import { sessions, type Sessions } from './sessions.ts'
import { byShard, shardOfRun } from './shards.ts'
import { sqlHandleOf, type SqlHandle } from '../sql-handle.ts'
import { PostgresWithin, type TellWithin } from './within.ts'
import { isUniqueViolation, sqlStateOf, translated } from './sql-state.ts'
import { childrenStarting, startInOrder } from './ordered-starting.ts'
import { starting, type Starting } from './starting.ts'
import { steering, type Steering } from './steering.ts'
import { Wants } from './wants.ts'

/** What a store is built from; `openPostgresStore` puts it together. */
export interface PostgresStoreParts {
  readonly database: Database
  readonly dialect: Dialect
  readonly monotonic: () => number
  /** Creates or updates the schema. */
  readonly migrate: () => Promise<void>
  readonly hearing: Hearing
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

type HeldLease = Lease & { readonly runId: string }

/** A check reads everything, and there may be millions of runs: nobody waits for it but the doctor. */
const longestCheckMs = 60 * 60_000

export class PostgresStore implements Store, StoreAdmin, StoreTransactions {
  readonly capabilities: Capabilities
  private readonly parts: PostgresStoreParts
  private readonly db: Database
  readonly dialect: Dialect
  readonly starting: Starting
  readonly idempotency: Idempotency
  private readonly claiming: Claiming
  private readonly committing: Committing
  readonly judging: Judging
  readonly delivering: Delivering
  readonly steering: Steering
  readonly reading: Reading
  private readonly feeding: Feeding
  private readonly sessions: Sessions
  private readonly rescuing: Rescuing
  private readonly finding: Finding
  private readonly dead: DeadLetters
  private readonly checking: Checking
  private nextShard = 0

  constructor(parts: PostgresStoreParts) {
    const { database, dialect, monotonic, hearing } = parts
    const exchange = exchanging(dialect)
    this.parts = parts
    this.db = database
    this.dialect = dialect
    this.starting = starting(dialect)
    this.idempotency = idempotency(dialect)
    this.claiming = claiming(dialect, monotonic)
    this.reading = reading(dialect)
    this.judging = judging(dialect, exchange, childrenStarting(this))
    this.committing = committing(dialect, this.judging)
    this.delivering = delivering(dialect, exchange)
    this.steering = steering(dialect, exchange, this.idempotency)
    this.feeding = feeding(dialect)
    this.sessions = sessions(dialect)
    this.rescuing = rescuing(dialect, exchange)
    this.finding = finding(dialect)
    this.dead = deadLetters(dialect)
    this.checking = checking(dialect)
    hearing.attend((hints) => this.claiming.notice(hints))
    this.capabilities = {
      get notifies() {
        return hearing.hears
      },
      multiProcess: true,
      shards: dialect.shards,
      transactions: true,
    }
  }

  async migrate(): Promise<void> {
    this.db.assertOpen()
    await this.parts.migrate()
  }

  async start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    if (this.dialect.shards > 1 && runs.some(({ idempotencyKey }) => idempotencyKey !== null)) {
      return this.db.transaction('start.commit', (x) => startInOrder(this, x, runs))
    }
    return this.spread(
      runs,
      ({ id }) => id,
      ({ id, shard }) => {
        throw bug('A run is started in a shard that its id does not name', { runId: id, shard })
      },
      (shard, some) => this.db.alone((x) => this.starting.start(x, shard, some), 'start.commit'),
    )
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const { shards } = this.dialect
    if (shards === 1) return this.db.alone((x) => this.claiming.claim(x, 0, request))
    return this.claimInTurn(request)
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    return this.read(requests, (x) => this.reading.load(x, requests))
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    return this.spread(
      transitions,
      ({ runId }) => runId,
      (): Committed => ({ outcome: 'refused', reason: 'not-found' }),
      (shard, some) => oneByOneIfTaken(some, (few) => this.committing.commit(this.db, shard, few)),
    )
  }

  async deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    const letters = messages.filter(isLetter)
    if (letters.length < messages.length) {
      this.db.assertOpen()
      return this.exchange(messages)
    }
    return this.spread(
      letters,
      ({ runId }) => runId,
      (): Delivered => ({ outcome: 'target-not-found' }),
      async (shard, some) => {
        const put = await this.db.transaction('deliver.commit', (x) => this.delivering.put(x, shard, some))
        return put ?? this.exchange(some)
      },
    )
  }

  private exchange(sent: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    const wants = wantsOfSending(sent)
    return this.db.transaction('deliver.commit', (x) => this.delivering.exchange(x, sent, wants))
  }

  async steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    return this.spread(
      requests,
      ({ runId }) => runId,
      (): Steered => ({ outcome: 'not-found' }),
      (shard, some) =>
        oneByOneIfTaken(some, (few) => {
          const wants = new Wants()
          return this.db.transaction('steer.commit', (x) => this.steering.steer(x, shard, few, wants))
        }),
    )
  }

  async beat(request: BeatRequest): Promise<Beat> {
    return this.sessions.beat(this.db, request)
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    return this.rescuing.rescue(this.db, request)
  }

  async release(leases: readonly HeldLease[]): Promise<void> {
    await this.spread(
      leases,
      ({ runId }) => runId,
      () => undefined,
      async (shard, some) => {
        const wants = new Wants()
        await this.db.transaction('release.commit', (x) => this.steering.release(x, shard, some, wants))
        return some.map(() => undefined)
      },
    )
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

  async check(): Promise<readonly Checked[]> {
    // It reads everything, in plans and in a time of its own.
    const checked = this.db.lend((_client, x) => this.checking.check(x), longestCheckMs)
    return checked.catch((error: unknown) => {
      throw translated(error)
    })
  }

  within(handle: unknown): Within {
    this.db.assertOpen()
    return new PostgresWithin(this, sqlHandleOf(handle), this.parts.hearing.tellWithin)
  }

  async transact<Result>(work: (handle: unknown, within: Within) => Promise<Result>): Promise<Result> {
    const { tellWithin } = this.parts.hearing
    return this.db.lend((client) => work(client, new PostgresWithin(this, handleOver(client), tellWithin)))
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.db.assertOpen()
    return this.parts.hearing.listen(onHint)
  }

  async close(): Promise<void> {
    if (!this.db.close()) return
    await this.parts.onClose()
  }

  /** Asks one shard after the other, each time beginning with the next, until there are enough. */
  private async claimInTurn(request: ClaimRequest): Promise<Claimed> {
    const { shards } = this.dialect
    const first = this.nextShard
    this.nextShard = (first + 1) % shards
    const runs: Run[] = []
    const fresh: Fresh[] = []
    let more = false
    let nextDue: number | null = null
    let now = 0
    for (let turn = 0; turn < shards; turn += 1) {
      const limit = request.limit - runs.length
      const shard = (first + turn) % shards
      const claimed = await this.db.alone((x) => this.claiming.claim(x, shard, { ...request, limit }))
      runs.push(...claimed.runs)
      fresh.push(...(claimed.fresh ?? []))
      more ||= claimed.more
      now = claimed.now
      if (claimed.nextDue !== null) nextDue = Math.min(nextDue ?? claimed.nextDue, claimed.nextDue)
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

  /** Sends what belongs to one shard together, and puts the answers into the order of what was asked. */
  private async spread<Item, Answer>(
    items: readonly Item[],
    runIdOf: (item: Item) => string,
    unknown: (item: Item) => Answer,
    send: (shard: number, items: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    this.db.assertOpen()
    const shards = byShard(this.dialect, items, runIdOf)
    const [only] = shards
    if (only !== undefined && only[1].length === items.length) return send(only[0], items)
    const answers = new Map<Item, Answer>()
    await Promise.all(
      Array.from(shards, async ([shard, some]) => {
        const found = await send(shard, some)
        for (const [index, item] of some.entries()) answers.set(item, found[index] as Answer)
      }),
    )
    return items.map((item) =>
      shardOfRun(this.dialect, runIdOf(item)) === undefined ? unknown(item) : (answers.get(item) as Answer),
    )
  }
}

/** What statements of ours are sent to inside a transaction that we opened ourselves. */
function handleOver(client: ClientLike): SqlHandle {
  return { query: async (text, values) => (await client.query({ text, values })).rows }
}

/**
 * If a unique index refuses the whole, each gets its own transaction, so that only the one is refused which is in the way;
 * that one alone is tried again, and its look will tell who was before it.
 */
async function oneByOneIfTaken<Item, Answer>(
  items: readonly Item[],
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await send(items)
    } catch (error) {
      const cause = isHoldfastError(error) ? error.cause : undefined
      if (!isUniqueViolation(sqlStateOf(cause)) || tries > 10) throw error
      if (items.length > 1) break
    }
  }
  const answers: Answer[] = []
  for (const item of items) answers.push(...(await oneByOneIfTaken([item], send)))
  return answers
}
