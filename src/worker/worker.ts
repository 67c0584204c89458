// A worker: what makes the runs of one process move. It claims what it can perform, performs it in a bounded number of
// slots, keeps its leases, takes over from workers that died, and lets go of everything in good order when it is stopped.

import type { Definition, Host } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import { HoldfastError } from '../core/error.ts'
import type { Lease, Run, Wish } from '../core/run.ts'
import { checkOptions, shown } from '../core/suggest.ts'
import type { Desk, Engine } from '../engine/engine.ts'
import type { Beat, HeldClaim } from '../store.ts'
import { Claimer } from './claimer.ts'
import { Heartbeat, type HeartbeatOwner } from './heartbeat.ts'
import { Performer } from './performer.ts'
import { Rescuer, type TookOver } from './rescuer.ts'
import { Slots } from './slots.ts'

export interface WorkOptions {
  /** How many runs move at once; a run that waits does not count. @default 100 */
  readonly concurrency?: number
  /** How long this process may be silent before others take over what it holds. @default 30 s */
  readonly lease?: Duration
  /** How often it says that it is alive. @default a third of the lease */
  readonly heartbeat?: Duration
  /** How many waiting runs stay in memory, so that waking them needs no replay. @default 10,000 */
  readonly parked?: number
  /** Retry delays up to this are waited in memory; longer ones release the run. @default 1 s */
  readonly inlineRetry?: Duration
  /** How long `stop()` waits for runs that are moving before it aborts and gives them back. @default 30 s */
  readonly shutdownTimeout?: Duration
  /** Whether SIGTERM and SIGINT close this Holdfast in good order before the process ends. @default true */
  readonly signals?: boolean
}

const optionNames = ['concurrency', 'lease', 'heartbeat', 'parked', 'inlineRetry', 'shutdownTimeout', 'signals']

/** How long the answer to a last commit may take to get here after the store has said that the run is not held here. */
const lostGraceMs = 1_000

/** How long an idle worker sleeps at most: hints may be lost, and other processes may give none. */
const longestPollMs = 3_000

export class Worker implements HeartbeatOwner {
  private readonly engine: Engine
  private readonly slots: Slots
  private readonly performer: Performer
  private readonly claimer: Claimer
  private readonly heartbeat: Heartbeat
  private readonly rescuer: Rescuer
  private readonly shutdownMs: number
  /** Runs whose steps said that they are alive since the last heartbeat. */
  private readonly lively = new Set<string>()
  /** Claims that the last heartbeat told of and nobody here knows. */
  private strays: ReadonlySet<string> = new Set()
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
    checkOptions(options, optionNames, 'work()')
    const { concurrency = 100, parked = 10_000, inlineRetry = '1s', shutdownTimeout = '30s', lease = '30s' } = options
    this.engine = engine
    this.shutdownMs = toMs(shutdownTimeout, 'shutdownTimeout')
    const host: Host = {
      ports: engine.ports,
      payloads: engine.payloads,
      services,
      inlineRetryMs: toMs(inlineRetry, 'inlineRetry'),
      heartbeat: (runId) => void this.lively.add(runId),
      now: () => engine.clock.now(),
      pauseCheckMs: engine.pauseCheckMs,
      mailbox: engine.mailbox,
      prepare: (child) => engine.prepare(child),
      transitionId: engine.transitionId,
      commit: engine.commit,
      transact: engine.transact,
    }
    this.slots = new Slots(count('concurrency', concurrency, 1), () => this.slotFreed())
    this.performer = new Performer(engine, host, this.slots, {
      parked: count('parked', parked, 0),
      pause: () => this.pause(),
      resume: () => this.resume(),
    })
    const definitions = engine.registry.all()
    const selectors = definitions.map(({ type, version, leaseMs }) => ({ type, version, leaseMs }))
    this.claimer = new Claimer(engine, this.slots, this.performer, {
      selectors,
      pollMs: engine.pollMs ?? longestPollMs,
      refused: (reason) => this.refused(reason),
    })
    const leaseMs = toMs(lease, 'lease')
    const everyMs = heartbeatMs(options, leaseMs, definitions)
    this.heartbeat = new Heartbeat(engine, this, { leaseMs, everyMs })
    this.rescuer = new Rescuer(engine, leaseMs)
  }

  /** Opens the session, takes over from workers that died, and begins to claim. */
  async start(): Promise<TookOver> {
    await this.heartbeat.start()
    const tookOver = await this.rescuer.start().catch(async (error: unknown) => {
      // Nobody will stop a worker that never started.
      await this.stop()
      throw error
    })
    this.engine.desk = this.desk
    this.engine.onReady = this.claimer.wake
    this.claimer.start()
    return tookOver
  }

  /** Stops claiming, waits for what is moving, then aborts and gives back what is left. Calling it again is fine. */
  stop(): Promise<void> {
    this.stopped ??= this.shutDown().finally(() => this.settle(this.refusal))
    return this.stopped
  }

  /** Asks at once, and not with its next heartbeat, what others want of the runs that it holds. */
  beat(): void {
    this.heartbeat.hurry()
  }

  refused(reason: HoldfastError): void {
    if (this.refusal !== null) return
    this.refusal = reason
    const { logger } = this.engine.ports
    logger.error(`This worker stops: ${reason.message}`, { error: reason })
    this.stop().catch((error: unknown) => logger.error('The worker did not stop in good order.', { error }))
  }

  claims(): readonly HeldClaim[] {
    const { claims, overdue } = this.performer.claims(this.lively)
    this.lively.clear()
    // Others may have taken these over. A step that hangs would never ask, so it is told.
    for (const claim of overdue) this.lose(claim, 'Its claim took longer than the lease of its workflow')
    return claims
  }

  pause(): void {
    this.pauses += 1
    this.claimer.pause()
  }

  resume(): void {
    this.pauses -= 1
    if (this.pauses === 0) this.claimer.resume()
  }

  leasesLost(reason: HoldfastError): void {
    const lost = this.performer.abort(reason).length
    this.engine.ports.logger.error(reason.message, { error: reason, runs: lost })
  }

  claimLost(claim: HeldClaim): void {
    // It may just have ended here, with the answer to its last commit still on its way: that answer comes first.
    this.engine.ports.clock.after(lostGraceMs, () => this.lose(claim, 'The store says that it is not held here'))
  }

  strayed(strays: Beat['strays']): void {
    const seen = new Set<string>()
    const stray: (Lease & { readonly runId: string })[] = []
    for (const { runId, token } of strays) {
      if (this.performer.isMoving(runId)) continue
      const claim = `${runId} ${token}`
      // One that was leased a moment ago begins soon. One that is still unknown a beat later is nobody's: whoever leased it
      // here was told that this had failed.
      if (this.strays.has(claim)) {
        this.performer.disown(runId, token)
        stray.push({ session: this.engine.session, token, runId })
      } else seen.add(claim)
    }
    this.strays = seen
    if (stray.length === 0) return
    this.engine.ports.logger.warn(`Gave back ${stray.length} of the runs that were leased without an answer.`)
    void this.engine.store.release(stray).then(this.engine.onReady, (error: unknown) => {
      this.engine.ports.logger.warn('Runs without a holder could not be given back; tried again soon.', { error })
    })
  }

  runWished(runId: string, wish: Wish): void {
    this.performer.obey(runId, wish)
  }

  runMailed(runId: string, inbox: number): void {
    this.performer.mailed(runId, inbox)
  }

  private lose({ runId, token }: HeldClaim, why: string): void {
    const message = `Run ${runId} is lost here. ${why}, and others may go on with it.`
    this.performer.lose(runId, token, new HoldfastError('LEASE_LOST', message))
  }

  runTimedOut(runId: string): void {
    const message = `Run ${runId} had not ended when the time that its start allowed was over.`
    this.performer.fail(runId, new HoldfastError('RUN_TIMEOUT', message, { details: { runId } }))
  }

  private readonly desk: Desk = {
    isParked: (runId) => this.performer.isParked(runId),
    reserve: (): Lease | null => {
      if (this.slots.free <= 0 || this.claimer.hasBacklog || this.claimer.isPaused) return null
      this.slots.take(1)
      return { session: this.engine.session, token: 1 }
    },
    begin: (run, lease, entries) => this.performer.begin(run, lease, entries),
    cancel: () => this.slots.give(1),
    steered: (run) => this.steered(run),
    mailed: (runId) => this.performer.mailed(runId, null),
    isMoving: (runId) => this.performer.isMoving(runId),
  }

  private steered(run: Run): void {
    if (run.wish !== null) return this.performer.obey(run.id, run.wish)
    if (run.status !== 'cancelled') return
    const error = new HoldfastError('RUN_CANCELLED', `Run ${run.id} was cancelled at once.`, {
      details: { runId: run.id },
    })
    this.performer.lose(run.id, null, error)
  }

  private slotFreed(): void {
    this.claimer.slotFreed()
    if (this.slots.inUse === 0) this.idle?.()
  }

  private async shutDown(): Promise<void> {
    const { engine } = this
    if (engine.desk === this.desk) engine.desk = null
    engine.onReady = () => undefined
    this.rescuer.stop()
    await this.claimer.stop()
    await this.quiet(this.shutdownMs)
    const leases = this.performer.abort(new Error('The worker is shutting down.'))
    await engine.drain(this.shutdownMs)
    try {
      await engine.store.release(leases)
      if (leases.length > 0) {
        const runs = leases.length === 1 ? '1 run' : `${leases.length} runs`
        engine.ports.logger.warn(`Gave back ${runs} that did not end within the shutdown timeout.`)
      }
    } catch (error) {
      engine.ports.logger.warn('What was held could not be given back; others take it over.', { error })
    }
    try {
      await this.heartbeat.stop()
    } catch (error) {
      engine.ports.logger.warn('The session could not be ended; it ends with its lease.', { error })
    }
  }

  /** Settles when no slot is in use, or after a time. */
  private quiet(ms: number): Promise<void> {
    if (this.slots.inUse === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.engine.ports.clock.after(ms, () => resolve())
      this.idle = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** Often enough for the shortest of all leases. */
function heartbeatMs(options: WorkOptions, leaseMs: number, definitions: readonly Definition[]): number {
  const shortest = Math.min(leaseMs, ...definitions.map((definition) => definition.leaseMs ?? leaseMs))
  if (options.heartbeat === undefined) return shortest / 3
  const everyMs = toMs(options.heartbeat, 'heartbeat')
  if (everyMs > 0 && 2 * everyMs <= shortest) return everyMs
  throw new HoldfastError(
    'INVALID_OPTION',
    'work({ heartbeat }) must be at most half of the shortest lease, so that one late beat does no harm.',
  )
}

function count(name: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least) return value
  throw new HoldfastError(
    'INVALID_OPTION',
    `work({ ${name} }) must be a whole number from ${least}. Got ${shown(value)}.`,
  )
}
