// The world of one test: a store, a clock that the test moves, a process that performs runs and may die, and a Holdfast
// beside it that starts, signals and reads, and never dies.
//
// The world is at rest when nothing can happen without time passing or an outside call. Time moves only then, so steps that
// do real work are awaited, and everything happens in the same order each time.

import { jsonCodec } from '../../core/payload/codec.ts'
import { toMs, type Duration } from '../../core/definition/duration.ts'
import { Payloads } from '../../core/payload/payload.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import type { Transition } from '../../core/model/transition.ts'
import type { TransactionRunner } from '../../engine/store/transact.ts'
import { createHoldfast, type Holdfast, type HoldfastOptions } from '../../holdfast.ts'
import type { Store, StoreAdmin } from '../../store.ts'
import { systemPorts } from '../../system.ts'
import { silentLogger } from '../logger.ts'
import { createSeededRandom } from '../seeded-random.ts'
import { createVirtualClock, type VirtualClock } from '../virtual-clock.ts'
import { Attempts, type Choose } from './attempts.ts'
import { AwaitedResults } from './awaited-results.ts'
import { BodyWatch, type BodyChecks } from './body-watch.ts'
import { CountedTurns } from './counted-turns.ts'
import { drivenBy } from './driven-calls.ts'
import { assertEmpty, assertSameTime, openTestStore, type TestStore } from './test-store.ts'
import { awaitedInVain, describeWaiting, isUpToOthers, unended, type WaitingRun } from './waiting-run.ts'
import { WorkerProcess, type Death } from './worker-process.ts'

/**
 * Long, so that the heartbeats of a month take no time: here no process needs a lease to detect a crash, or a heartbeat to
 * receive control requests. Measured: a year takes a second of CPU; with the 30 s of a real worker a month takes five.
 */
const lease = '1 day'
/** The store sends every hint, and no hint is lost. */
const poll = '1 day'

/** The same in every world: the output of a body must not depend on randomness. */
const tokenKey = 'the key of completion tokens that complete nothing outside of a test'

type Shared = Omit<HoldfastOptions, 'store' | 'migrate' | 'poll' | 'ports' | 'services'>

export interface WorldOptions extends Shared {
  readonly services?: unknown
  readonly store?: TestStore
  /** `keep`: findings in bodies are kept for the caller. @default 'error' */
  readonly bodyChecks?: BodyChecks | 'keep'
  readonly seed?: number
  readonly patience?: Duration
  readonly cachedRuns?: number
  /** Holds back results until they are chosen. */
  readonly choose?: Choose
  /** Decides whether a process dies at a commit. */
  readonly onCommit?: (transitions: readonly Transition[]) => Death
}

export class World {
  readonly clock: VirtualClock
  readonly store: Store & StoreAdmin
  readonly attempts: Attempts
  readonly payloads: Payloads
  /** Starts, sends and reads. */
  driver!: Holdfast
  /** How many processes there were. */
  incarnations = 0
  readonly watch: BodyWatch
  private readonly options: WorldOptions
  private readonly transaction: TransactionRunner | null
  private readonly mostTransactions: number | undefined
  private readonly releaseAmbient: () => void
  private readonly results: AwaitedResults
  private readonly shared: HoldfastOptions
  private readonly turns = new CountedTurns(systemPorts(silentLogger).turns)
  private process: WorkerProcess | null = null
  private staysDown = false
  private isClosed = false
  /** The error of a failed boot, for the call that waits for the world to come to rest. */
  private failure: { readonly error: unknown } | null = null
  /** A write happened since the timeouts of runs were read. */
  private isWritten = true
  /** An outside call has made a control request. */
  private isSteered = false
  private cancelBound: Cancel = () => undefined

  static async open(options: WorldOptions): Promise<World> {
    const opened: { world?: World } = {}
    const clock = createVirtualClock(undefined, async () => opened.world?.rest())
    const store = await openTestStore(options.store, clock, options.transaction)
    const world = new World(options, clock, store)
    opened.world = world
    try {
      const random = createSeededRandom(world.seedOf(0))
      // Inputs are decided here, too.
      const { bodies } = world.watch
      const ports = {
        clock: { ...clock, drift: 0 },
        random,
        turns: world.turns,
        ...(bodies === null ? {} : { bodies }),
      }
      const holdfast = await createHoldfast({ ...world.shared, store: world.noticing(store), ports })
      world.driver = drivenBy(clock, world.results.of(holdfast))
      await assertEmpty(store)
      world.boot()
      await world.rest()
      return world
    } catch (error) {
      await world.close()
      throw error
    }
  }

  private constructor(options: WorldOptions, clock: VirtualClock, store: Store & StoreAdmin) {
    const { seed, patience = '2s', cachedRuns, choose = null, onCommit, store: _opened, ...rest } = options
    const { transaction, transactions, bodyChecks = 'error', ...shared } = rest
    this.options = {
      seed: seed ?? 1,
      ...(cachedRuns === undefined ? {} : { cachedRuns }),
      ...(onCommit && { onCommit }),
    }
    this.transaction = transaction ?? null
    this.mostTransactions = transactions
    this.clock = clock
    this.store = store
    this.watch = new BodyWatch({ clock, checks: bodyChecks, logger: shared.logger })
    const logger = this.watch.listening(shared.logger ?? silentLogger)
    this.shared = { tokenKey, ...shared, logger, poll, store } as HoldfastOptions
    this.payloads = new Payloads(options.codec ?? jsonCodec(), options.offload, store.capabilities.namespace)
    this.attempts = new Attempts(clock, patience, choose, (work) => this.watch.inVirtualTime(work))
    this.releaseAmbient = this.watch.hold()
    this.results = new AwaitedResults({
      ms: this.attempts.patienceMs,
      isBusy: () => this.attempts.isBusy,
      settle: () => this.clock.advance(0),
      explain: async (runId) => {
        const [runs, { names }] = [await this.waiting(), await this.driver.unread(runId)]
        return awaitedInVain(runId, runs, { now: this.clock.now(), unread: names })
      },
    })
  }

  get tokenKey(): string {
    return this.shared.tokenKey ?? tokenKey
  }

  /** Lets everything happen that needs no time. */
  async rest(): Promise<void> {
    for (;;) {
      await this.turns.over()
      await this.process?.up
      if (this.failure !== null) throw this.failure.error
      if ((await this.attempts.outlast()) || this.attempts.release()) continue
      if (this.isSteered) this.process?.beat()
      this.isSteered = false
      if (!this.isWritten) return this.watch.assertSafe()
      await this.lookAtBounds()
    }
  }

  /** Lets everything happen that is due now. */
  drain(): Promise<readonly WaitingRun[]> {
    return this.results.during(async () => {
      await this.clock.advance(0)
      await this.rested()
      return this.waiting()
    })
  }

  /** Lets this much time pass. */
  advance(duration: Duration): Promise<void> {
    return this.results.during(async () => {
      await this.clock.advance(duration)
      await this.rested()
    })
  }

  /** The world is at rest: throws if the test has misspelt a step. */
  private async rested(): Promise<void> {
    const { hasMisspelt } = this.attempts
    if (hasMisspelt && (await unended(this.store)).length === 0) this.attempts.assertReached({ onlyMisspelt: true })
  }

  /**
   * Lets time pass until every run has ended or waits for an outside call; at most for this long, or until the condition
   * holds.
   */
  drainTime(atMost: Duration, isEnough = (): boolean => false): Promise<readonly WaitingRun[]> {
    return this.results.during(() => this.passTime(atMost, isEnough))
  }

  private async passTime(atMost: Duration, isEnough: () => boolean): Promise<readonly WaitingRun[]> {
    const until = this.clock.now() + toMs(atMost, 'drain({ atMost })')
    for (;;) {
      await this.clock.advance(0)
      const runs = await unended(this.store)
      const isOver = runs.every(isUpToOthers) || this.clock.now() >= until || isEnough()
      if (isOver) {
        await this.rested()
        return this.waiting()
      }
      let checks = 0
      // The condition is checked before the next timer fires, and again after that.
      const hasFired = (): boolean => (checks += 1) > 1
      await this.clock.runUntil(hasFired, until - this.clock.now())
    }
  }

  async waiting(): Promise<readonly WaitingRun[]> {
    const runs = await unended(this.store)
    const { store, payloads } = this
    const now = this.clock.now()
    const stepsOf = (runId: string): readonly string[] =>
      this.attempts
        .list()
        .filter((attempt) => attempt.runId === runId && attempt.outcome === 'running')
        .map(({ step }) => step)
    return Promise.all(
      runs.map((run) => describeWaiting(run, { store, payloads, tokenKey: this.tokenKey, now, stepsOf })),
    )
  }

  /** The process dies. Another one begins at once, or after a time. */
  crash(away: Duration | undefined): Promise<void> {
    return this.results.during(() => this.die(away))
  }

  private async die(away: Duration | undefined): Promise<void> {
    this.staysDown = away !== undefined
    await this.process?.kill()
    if (away !== undefined) {
      await this.clock.advance(away)
      this.staysDown = false
      this.boot()
    }
    await this.rest()
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.cancelBound()
    this.releaseAmbient()
    await this.process?.kill()
    await this.driver?.close()
    await this.store.close()
  }

  /** A new process takes over the runs of dead ones. */
  private boot(): void {
    if (this.staysDown || this.isClosed) return
    this.incarnations += 1
    const { clock, store, turns, attempts, options } = this
    const process = new WorkerProcess({
      store,
      clock,
      turns,
      attempts,
      bodies: this.watch.bodies,
      onCommit: options.onCommit ?? (() => null),
      onDeath: () => this.boot(),
      onWrite: () => {
        this.isWritten = true
        this.results.notice()
      },
    })
    this.process = process
    const random = createSeededRandom(this.seedOf(this.incarnations))
    const { cachedRuns } = options
    const begun = process.boot(async (line, ports) => {
      const own = this.transaction === null ? {} : { transaction: process.transactionBy(this.transaction) }
      const most = this.mostTransactions === undefined ? {} : { transactions: this.mostTransactions }
      const working = { ...this.shared, ...own, ...most, store: line, ports: { ...ports, random } }
      const holdfast = await createHoldfast(working)
      return holdfast.work({ lease, signals: false, ...(cachedRuns === undefined ? {} : { cachedRuns }) })
    })
    begun.catch((error: unknown) => void (this.failure = { error }))
  }

  private seedOf(incarnation: number): number {
    return 1_000 * (this.options.seed ?? 1) + incarnation
  }

  /** The store as the driver of the test sees it. */
  private noticing(store: Store & StoreAdmin): Store & StoreAdmin {
    return new Proxy(store, {
      get: (target, name): unknown => {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...request: unknown[]): unknown => {
          this.results.notice()
          this.isSteered ||= name === 'control'
          this.isWritten ||= name === 'control' || name === 'start'
          return Reflect.apply(member, target, request)
        }
      },
    })
  }

  /** A worker polls for runs past their timeout. Here the world triggers that at the exact time. */
  private async lookAtBounds(): Promise<void> {
    this.isWritten = false
    this.cancelBound()
    const request = this.process?.rescueRequest ?? null
    if (request === null) return
    const { next, now } = await this.store.rescue({ ...request, limit: 0 })
    assertSameTime(now, this.clock.now())
    const held = (await unended(this.store)).flatMap(({ session, timeoutAt }) =>
      session === null ? [] : (timeoutAt ?? []),
    )
    const nearest = (at: number, one: number): number => (one > now ? Math.min(at, one) : at)
    const ms = held.reduce(nearest, next ?? Number.POSITIVE_INFINITY) - now
    if (ms === Number.POSITIVE_INFINITY) return
    this.cancelBound = this.clock.after(Math.max(1, ms), () => {
      this.isWritten = true
      this.process?.beat()
      void this.store.rescue(request).catch(() => undefined)
    })
  }
}
