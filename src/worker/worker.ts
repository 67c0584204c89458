// A worker moves the runs of one process. It claims the runs that it can perform, performs them in a bounded number of slots,
// keeps its leases, takes over from workers that died, and gives everything back gracefully when it is stopped.

import { leaseBounds, patienceBounds, toMs } from '../core/definition/duration.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { withTimeout } from '../core/runtime/backoff.ts'
import type { Lease, Run, ControlRequest } from '../core/model/run.ts'
import { leastMaxCrashes } from '../core/rules/claims/suspect.ts'
import { checkOptions } from '../core/text/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import type { LocalWorker } from '../engine/local-worker.ts'
import type { Beat, HeldClaim } from '../store.ts'
import { Claimer } from './claim/claimer.ts'
import { lastCall } from './last-call.ts'
import { FirstMeetings } from './perform/first-meetings.ts'
import { Heartbeat, type HeartbeatListener } from './heartbeat.ts'
import { IsolatedRuns, type IsolationWorker } from './perform/isolation.ts'
import { KnownKeys } from './claim/known-keys.ts'
import { Performer } from './perform/performer.ts'
import { Housekeeper } from './housekeeper.ts'
import { Rescuer, type RecoveryCount } from './rescuer.ts'
import { RetryLog } from './perform/retry-log.ts'
import { Slots } from './perform/slots.ts'
import { Witness } from './perform/suspect-witness.ts'
import { checkBoolean } from '../core/text/check-option.ts'
import { workerHost, type WorkerHost } from './worker-host.ts'
import { count, heartbeatMs, workOptionNames, type WorkOptions } from './work-options.ts'

/** How long the answer to a last commit may take to get here after the store has reported that the run is not held here. */
const lostGraceMs = 1_000

/** How long a worker that has to stop waits for its last commits: those of runs that leave, and then all that is left. */
const lastWordsMs = 2_000
/** How long an idle worker sleeps at most: hints may be lost, and other processes may send none. */
const longestPollMs = 3_000

export class Worker implements HeartbeatListener {
  private readonly engine: Engine
  private readonly host: WorkerHost
  private readonly slots: Slots
  private readonly performer: Performer
  private readonly claimer: Claimer
  private readonly keys: KnownKeys
  private readonly isolation: IsolatedRuns
  private readonly witness: Witness
  private readonly heartbeat: Heartbeat
  private readonly firstMeetings = new FirstMeetings()
  private readonly retryLog: RetryLog
  private readonly rescuer: Rescuer
  private readonly housekeeper: Housekeeper
  private readonly shutdownMs: number
  private readonly leaseMs: number
  /** How often the steps of a run reported that they are alive, until a heartbeat that carries it has succeeded. */
  private readonly lively = new Map<string, number>()
  /** The part of that which the last heartbeat carried. */
  private reportedLively: ReadonlyMap<string, number> = new Map()
  /** Unknown leases of the last heartbeat. */
  private unknownLeases: ReadonlySet<string> = new Set()
  /** For how many reasons nothing new may be taken. */
  private pauses = 0
  private idle: (() => void) | null = null
  private stopped: Promise<void> | null = null
  /** Why it stops by itself. */
  private refusal: HoldfastError | null = null
  private settle: (reason: HoldfastError | null) => void = () => undefined
  /** Settles when it has stopped: with the reason if it did so by itself, else with null. */
  readonly ended = new Promise<HoldfastError | null>((resolve) => (this.settle = resolve))

  constructor(engine: Engine, services: unknown, options: WorkOptions = {}) {
    checkOptions(options, workOptionNames, 'work()')
    checkBoolean(options.signals, 'work({ signals })')
    const { concurrency = 100, cachedRuns = 10_000, inlineRetry = '2s', lease = '30s' } = options
    const { abortGrace = '30s', shutdownTimeout = '20s' } = options
    this.engine = engine
    this.retryLog = new RetryLog(engine.ports)
    this.shutdownMs = toMs(shutdownTimeout, 'work({ shutdownTimeout })', patienceBounds)
    const host = workerHost(engine, {
      // JavaScript, and the command line, can leave them out.
      services: services ?? {},
      inlineRetryMs: toMs(inlineRetry, 'work({ inlineRetry })', patienceBounds),
      abortGraceMs: toMs(abortGrace, 'work({ abortGrace })', patienceBounds),
      heartbeat: (runId) => void this.lively.set(runId, (this.lively.get(runId) ?? 0) + 1),
      firstMet: (run) => this.firstMeetings.of(run, engine.clock.now()),
      attemptFailed: (failed) => this.retryLog.add(failed),
      sent: ({ runId, status }, committed) => {
        if (status !== null) this.performer.leaving(runId, committed)
        this.isolation.sent(runId, committed)
      },
    })
    this.host = host
    this.slots = new Slots(count('concurrency', concurrency, 1), {
      freed: () => this.slotFreed(),
      left: () => this.runLeft(),
    })
    this.performer = new Performer(engine, host, this.slots, {
      cachedRuns: count('cachedRuns', cachedRuns, 0),
      timedOut: (runId) => this.runTimedOut(runId),
    })
    const definitions = engine.registry.all()
    const selectors = definitions.map(({ type, version, leaseMs }) => ({ type, version, leaseMs }))
    this.keys = new KnownKeys(engine)
    this.claimer = new Claimer(engine, this.slots, this.performer, {
      selectors,
      keys: this.keys,
      pollMs: engine.pollMs ?? longestPollMs,
      refused: (reason) => this.refused(reason),
      rested: () => this.isolation.look(),
      unanswered: () => this.heartbeat.seekUnknownLeases(),
    })
    const leaseMs = toMs(lease, 'work({ lease })', leaseBounds)
    this.leaseMs = leaseMs
    const everyMs = heartbeatMs(options, leaseMs, definitions)
    this.heartbeat = new Heartbeat(engine, this, { leaseMs, everyMs })
    const { claimer, heartbeat } = this
    const worker: IsolationWorker = {
      get isFree() {
        return claimer.isIdle
      },
      get mayLease() {
        return heartbeat.isHealthy
      },
      watch: (run) => this.witness.watch(run),
      pause: () => this.close(),
      resume: () => this.reopen(),
    }
    this.witness = new Witness(engine, { leaseMs })
    this.isolation = new IsolatedRuns(engine, this.slots, this.performer, worker, { selectors, leaseMs })
    this.housekeeper = new Housekeeper(engine)
    this.rescuer = new Rescuer(engine, {
      leaseMs,
      maxCrashes: count('maxCrashes', options.maxCrashes ?? 5, leastMaxCrashes),
      definitions,
      suspects: (dueInMs) => this.isolation.onSuspects(dueInMs),
      onDeath: this.housekeeper.look,
    })
  }

  /** Opens the session, takes over from workers that died, and begins to claim. */
  async start(): Promise<RecoveryCount> {
    // Before it holds a run: a process that may not read the key can perform no run that issues tokens.
    this.host.tokenKey = await this.engine.readTokenKey()
    this.engine.leaseFor(this.leaseMs)
    await this.heartbeat.start().catch((error: unknown) => {
      this.engine.leaseFor(null)
      throw error
    })
    const tookOver = await this.rescuer.start().catch(async (error: unknown) => {
      // The caller will not stop a worker that never started.
      await this.stop()
      throw error
    })
    await this.keys.look()
    this.engine.localWorker = this.localWorker
    this.engine.onReady = this.claimer.wake
    this.engine.onDeadline = this.rescuer.expect
    this.engine.onChore = this.housekeeper.look
    this.housekeeper.look()
    this.claimer.start()
    return tookOver
  }

  /**
   * Stops claiming and begins no step. Gives each run back when its steps under way have ended, and abandons the remaining
   * steps after the shutdown timeout. Calling it again is fine.
   */
  stop(): Promise<void> {
    this.stopped ??= this.shutDown().finally(() => {
      this.engine.leaseFor(null)
      this.settle(this.refusal)
    })
    return this.stopped
  }

  /** Asks for control requests at once, and not with the next heartbeat. */
  beat(): void {
    this.heartbeat.hurry()
  }

  refused(reason: HoldfastError): void {
    if (this.refusal !== null) return
    this.refusal = reason
    const { logger } = this.engine.ports
    logger.error(`This worker stops: ${reason.message}`, { error: reason })
    this.stop().catch((error: unknown) => logger.error('The worker did not stop gracefully.', { error }))
  }

  claims(): readonly HeldClaim[] {
    const { claims, overdue } = this.performer.claims(this.lively)
    this.reportedLively = new Map(this.lively)
    // Other workers may have taken these over. A step that hangs would never ask, so it is aborted.
    for (const claim of overdue) this.lose(claim, 'Its claim took longer than the lease of its workflow')
    // A run that is still being parked here and was claimed again is listed once: the answer names runs, not claims.
    return [...claims, ...this.claimer.claims().filter(({ runId }) => !this.performer.holds(runId))]
  }

  claimsKept(busy: readonly string[]): void {
    // A run that reported again meanwhile, or whose row was locked, is extended with the next heartbeat.
    for (const [runId, times] of this.reportedLively) {
      if (this.lively.get(runId) === times && !busy.includes(runId)) this.lively.delete(runId)
    }
  }

  pause(): void {
    this.close()
  }

  resume(): void {
    this.reopen()
    // A suspect may have waited for the session, too.
    this.isolation.look()
  }

  private close(): void {
    this.pauses += 1
    this.claimer.pause()
  }

  private reopen(): void {
    this.pauses -= 1
    if (this.pauses === 0) this.claimer.resume()
  }

  leasesLost(reason: HoldfastError): void {
    const lost = this.performer.abort(reason).length
    this.engine.ports.logger.error(reason.message, { error: reason, runs: lost })
  }

  claimLost(claim: HeldClaim): void {
    if (this.claimer.drop(claim.runId, claim.token)) return
    // It may just have ended here, with the answer to its last commit still on its way: that answer comes first.
    this.engine.ports.clock.after(lostGraceMs, () => this.lose(claim, 'The store says that it is not held here'))
  }

  unknownLeasesFound(unknownLeases: Beat['unknownLeases']): void {
    const seen = new Set<string>()
    const unknownLease: (Lease & { readonly runId: string })[] = []
    for (const { runId, token } of unknownLeases) {
      if (this.performer.holds(runId) || this.claimer.holds(runId)) continue
      const claim = `${runId} ${token}`
      // A run that was leased a moment ago begins soon. A lease that is still unknown a heartbeat later has no owner here:
      // the call that took it was answered with an error.
      if (this.unknownLeases.has(claim)) {
        this.performer.disown(runId, token)
        unknownLease.push({ session: this.engine.session, token, runId })
      } else seen.add(claim)
    }
    this.unknownLeases = seen
    if (unknownLease.length === 0) return
    this.engine.ports.logger.warn(
      `Gave back ${unknownLease.length === 1 ? '1 run' : `${unknownLease.length} runs`} that the store had leased without an answer.`,
    )
    void this.engine.store.release(unknownLease).then(this.engine.onReady, (error: unknown) => {
      this.engine.ports.logger.warn('Runs without a holder could not be given back; tried again soon.', { error })
    })
  }

  controlRequested(runId: string, controlRequest: ControlRequest): void {
    this.keepFromBeginning(runId)
    this.performer.applyControl(runId, controlRequest)
  }

  messageArrived(runId: string, inbox: number): void {
    this.performer.messageArrived(runId, inbox)
  }

  private lose({ runId, token }: HeldClaim, why: string): void {
    const message = `Run ${runId} is lost here. ${why}, and others may go on with it.`
    this.performer.lose(runId, token, new HoldfastError('LEASE_LOST', message))
  }

  runTimedOut(runId: string): void {
    const message = `Run ${runId} had not ended when the time that its start allowed was over.`
    this.performer.fail(runId, new HoldfastError('RUN_TIMEOUT', message, { details: { runId } }))
  }

  private readonly localWorker: LocalWorker = {
    isParked: (runId) => this.performer.isParked(runId),
    reserve: (): Lease | null => {
      if (this.slots.free <= 0 || this.claimer.hasBacklog || this.claimer.isPaused) return null
      this.slots.take(1)
      return { session: this.engine.session, token: 1 }
    },
    begin: (run, lease, entries) => this.performer.begin(run, lease, entries),
    cancel: () => {
      this.slots.give(1)
      // It may have failed after it took effect.
      this.heartbeat.seekUnknownLeases()
    },
    controlled: (run) => this.controlled(run),
    controlRequested: (runId) => this.keepFromBeginning(runId),
    ended: (runId) => this.runEnded(runId),
    messageArrived: (runId) => this.performer.messageArrived(runId, null),
    isMoving: (runId) => this.performer.isMoving(runId),
    isFilling: () => this.claimer.isFilling,
  }

  private controlled(run: Run): void {
    if (run.controlRequest !== null || run.deletedAt !== null) this.keepFromBeginning(run.id)
    // Also when the request was withdrawn: a pause that was taken back must not be obeyed.
    if (run.status !== 'cancelled') return this.performer.applyControl(run.id, run.controlRequest)
    this.runEnded(run.id)
    const error = new HoldfastError('RUN_CANCELLED', `Run ${run.id} was cancelled at once.`, {
      details: { runId: run.id },
    })
    this.performer.lose(run.id, null, error)
  }

  /** An operator has controlled a run: if it is claimed and has not begun, it is given back. */
  private keepFromBeginning(runId: string): void {
    this.claimer.controlRequested(runId)
    this.performer.controlRequested(runId)
  }

  private runEnded(runId: string): void {
    this.claimer.ended(runId)
    this.performer.controlRequested(runId)
  }

  private slotFreed(): void {
    this.claimer.slotFreed()
    this.runLeft()
  }

  private runLeft(): void {
    if (this.slots.inUse === 0) this.isolation.look()
    this.idle?.()
  }

  private async shutDown(): Promise<void> {
    const { engine } = this
    if (engine.localWorker === this.localWorker) engine.localWorker = null
    engine.onReady = () => undefined
    engine.onDeadline = () => undefined
    engine.onChore = () => undefined
    // Before any wait: runs that arrive later are given back, too.
    this.performer.giveBackAll()
    this.rescuer.stop()
    this.housekeeper.stop()
    // Runs that a claim leases and that is answered later are given back when the answer comes, or taken over by other
    // workers once the session is over.
    const { clock } = engine.ports
    const leftOf = (ms: number): (() => number) => {
      const end = clock.monotonic() + ms
      return () => Math.max(0, end - clock.monotonic())
    }
    const shutdown = leftOf(this.shutdownMs)
    await withTimeout(clock, lastWordsMs, Promise.all([this.claimer.stop(), this.isolation.stop()]))
    await this.quiet(shutdown(), () => !this.performer.isMoving())
    const late = this.performer.abandonAll()
    await this.quiet(lastWordsMs, () => this.slots.inUse === 0)
    const lastWords = leftOf(lastWordsMs)
    await withTimeout(clock, lastWords(), this.performer.gaveBack())
    const leases = this.performer.abort(new Error('The worker is shutting down.'))
    await engine.drain(lastWords())
    const locked = await lastCall(
      engine.ports,
      engine.store.release(leases),
      'Could not release the held runs; other workers will recover them.',
    )
    if (locked !== undefined && locked.length > 0) {
      engine.ports.logger.warn(
        `Other transactions have locked ${locked.length} of the runs held here; other workers take them over.`,
      )
    }
    if (locked !== undefined && late > 0) {
      const runs = late === 1 ? '1 run' : `${late} runs`
      engine.ports.logger.warn(`Gave back ${runs} that did not end within the shutdown timeout.`)
    }
    await withTimeout(clock, lastWordsMs, this.witness.stop())
    await lastCall(engine.ports, this.heartbeat.stop(), 'The session could not be ended; it ends with its lease.')
  }

  /** Settles when that is so after a slot was freed, or after a time. */
  private quiet(ms: number, isSo: () => boolean): Promise<void> {
    if (isSo()) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.engine.ports.clock.after(ms, () => resolve())
      this.idle = () => {
        if (!isSo()) return
        cancel()
        resolve()
      }
    })
  }
}
