// A worker: what makes the runs of one process move. It claims what it can perform, performs it in a bounded number of
// slots, and lets go of everything in good order when it is stopped.

import type { Definition, Host } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import { HoldfastError } from '../core/error.ts'
import type { Lease } from '../core/run.ts'
import { checkOptions, shown } from '../core/suggest.ts'
import type { Desk, Engine } from '../engine/engine.ts'
import { Claimer } from './claimer.ts'
import { Performer } from './performer.ts'
import { Slots } from './slots.ts'

export interface WorkOptions {
  /** How many runs move at once; a run that waits does not count. @default 100 */
  readonly concurrency?: number
  /** How many waiting runs stay in memory, so that waking them needs no replay. @default 10,000 */
  readonly parked?: number
  /** Retry delays up to this are waited in memory; longer ones release the run. @default 1 s */
  readonly inlineRetry?: Duration
  /** How long `stop()` waits for runs that are moving before it aborts and gives them back. @default 30 s */
  readonly shutdownTimeout?: Duration
}

/** How long an idle worker sleeps at most: hints may be lost. */
const pollMs = 1_000

export class Worker {
  private readonly engine: Engine
  private readonly slots: Slots
  private readonly performer: Performer
  private readonly claimer: Claimer
  private readonly shutdownMs: number
  private idle: (() => void) | null = null
  private stopped: Promise<void> | null = null

  constructor(engine: Engine, services: unknown, options: WorkOptions = {}) {
    checkOptions(options, ['concurrency', 'parked', 'inlineRetry', 'shutdownTimeout'], 'work()')
    const { concurrency = 100, parked = 10_000, inlineRetry = '1s', shutdownTimeout = '30s' } = options
    this.engine = engine
    this.shutdownMs = toMs(shutdownTimeout, 'shutdownTimeout')
    const host: Host = {
      ports: engine.ports,
      payloads: engine.payloads,
      services,
      inlineRetryMs: toMs(inlineRetry, 'inlineRetry'),
      now: () => engine.clock.now(),
      transitionId: engine.transitionId,
      commit: engine.commit,
    }
    this.slots = new Slots(count('concurrency', concurrency, 1), () => this.slotFreed())
    this.performer = new Performer(engine, host, this.slots, count('parked', parked, 0))
    const selectors = engine.registry.all().map(({ type, version }) => ({ type, version }))
    this.claimer = new Claimer(engine, this.slots, this.performer, { selectors, pollMs })
  }

  start(): void {
    this.engine.desk = this.desk
    this.engine.onReady = this.claimer.wake
    this.claimer.start()
  }

  /** Stops claiming, waits for what is moving, then aborts and gives back what is left. Calling it again is fine. */
  stop(): Promise<void> {
    this.stopped ??= this.shutDown()
    return this.stopped
  }

  private readonly desk: Desk = {
    reserve: (_definition: Definition): Lease | null => {
      if (this.slots.free <= 0 || this.claimer.hasBacklog) return null
      this.slots.take(1)
      return { session: this.engine.session, token: 1 }
    },
    begin: (run, lease, entries) => this.performer.begin(run, lease, entries),
    cancel: () => this.slots.give(1),
    isMoving: (runId) => this.performer.isMoving(runId),
  }

  private slotFreed(): void {
    this.claimer.slotFreed()
    if (this.slots.inUse === 0) this.idle?.()
  }

  private async shutDown(): Promise<void> {
    const { engine } = this
    if (engine.desk === this.desk) engine.desk = null
    engine.onReady = () => undefined
    await this.claimer.stop()
    await this.quiet(this.shutdownMs)
    const leases = this.performer.abort(new Error('The worker is shutting down.'))
    if (leases.length > 0) {
      const runs = leases.length === 1 ? '1 run' : `${leases.length} runs`
      engine.ports.logger.warn(`Gave back ${runs} that did not end within the shutdown timeout.`)
    }
    await engine.drain()
    await engine.store.release(leases)
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

function count(name: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least) return value
  throw new HoldfastError(
    'INVALID_OPTION',
    `work({ ${name} }) must be a whole number from ${least}. Got ${shown(value)}.`,
  )
}
