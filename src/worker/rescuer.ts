// Looks for holders that died and takes their runs over, and ends runs whose time is over. Every worker does this; the
// store sees to it that each run is taken over once. An error here is logged and harms nothing but the time until the
// next look.
//
// It looks when the next deadline or lease expires: the store names that time with each answer, and hints report new deadlines.
// On a store without hints it looks at least once a second, so that a deadline is kept: that costs one read, and delays no
// other call.
//
// If an expired run is still there after a look, another transaction has locked its row. It is looked at again after a pause,
// longer each time; and so after a look that failed: on SQLite another process may have held the write lock for too long.

import type { Definition } from '../core/definition/definition.ts'
import { pausedLine } from '../core/rows/engine-notes.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { nearDeadlineMs } from '../core/rules/claims/deadline.ts'
import type { Cancel } from '../core/runtime/ports.ts'
import type { CrashRule } from '../core/rules/claims/takeover.ts'
import type { Engine } from '../engine/engine.ts'
import type { RescueFailure, Rescued } from '../store.ts'
import { Contention } from './contention.ts'

export interface RecoveryCount {
  /** How many sessions were found dead. */
  readonly sessions: number
  /** How many runs were taken from holders that died. */
  readonly runs: number
}

export interface RescuerOptions {
  readonly leaseMs: number
  /** How many crashes a run may have, unless its workflow has its own bound. */
  readonly maxCrashes: number
  readonly definitions: readonly Definition[]
  /** Called after every look: in how many milliseconds a suspect is due, null if there is none. */
  readonly suspects: (dueInMs: number | null) => void
  /** Called when a worker was found dead: it may have left chores half done. */
  readonly onDeath?: () => void
}

const runsAtOnce = 500
/** Its own session is often what would run out next, and a beat will come before that. */
const shortestPauseMs = 100
/**
 * The pauses while other transactions hold the rows of expired leases, and after errors. Behind those rows the store does not
 * see what expires next; a database that restarts is back in seconds, and the runs have waited a whole lease already.
 */
const pauses = { firstMs: shortestPauseMs, longestMs: 1_000 } as const
/** How often it looks on a store that sends no hints of new deadlines. */
const unhintedMs = 1_000

/** @internal */
export class Rescuer {
  private readonly engine: Engine
  private readonly options: RescuerOptions
  private readonly everyMs: number
  private readonly workflows: readonly CrashRule[]
  private readonly failures: Readonly<Record<RescueFailure, string>>
  /** When it last looked, and when it looks next, in the time of this process. */
  private lookedAt = Number.NEGATIVE_INFINITY
  private nextAt = Number.POSITIVE_INFINITY
  private isLooking = false
  private readonly contention: Contention
  private readonly failed: Contention
  /** The earliest deadline that was reported while it looked, in store time. */
  private loggedAt = Number.POSITIVE_INFINITY
  private cancel: Cancel | null = null
  private stopped = false

  constructor(engine: Engine, options: RescuerOptions) {
    this.engine = engine
    this.options = options
    this.contention = new Contention(engine.ports.random, pauses)
    this.failed = new Contention(engine.ports.random, pauses)
    // Deadlines that are further away are not reported by hints.
    this.everyMs = Math.min(options.leaseMs / 2, nearDeadlineMs / 2)
    this.workflows = options.definitions.map(({ type, version, maxCrashes = null, onCrashes = 'pause' }) => {
      return { type, version, maxCrashes, onCrashes }
    })
    // One text for any number of runs: it has no place that a codec could bind it to.
    const { payloads } = engine
    this.failures = {
      crashed: payloads.plain(
        new HoldfastError(
          'RUN_CRASHED',
          'The processes that performed this run died too many times in a row, so it is not tried again. ' +
            'Look for what ends the process: memory, a native module, process.exit.',
        ),
      ),
      'timed-out': payloads.plain(
        new HoldfastError('RUN_TIMEOUT', 'This run had not ended when the time that its start allowed was over.'),
      ),
      expired: payloads.plain(new HoldfastError('RUN_EXPIRED', 'No worker began this run before its start expired.')),
    }
  }

  /** Looks once, and then regularly. Returns the counts of the first look. */
  async start(): Promise<RecoveryCount> {
    try {
      return await this.look()
    } catch (error) {
      this.stop()
      throw error
    }
  }

  stop(): void {
    this.stopped = true
    this.cancel?.()
  }

  /** The time of a run without a holder is over at this time of the store. */
  readonly expect = (at: number): void => {
    if (this.isLooking) this.loggedAt = Math.min(this.loggedAt, at)
    else this.schedule(Math.max(0, at - this.engine.clock.now()))
  }

  /** The next look comes in this many milliseconds, unless one comes sooner. */
  private schedule(ms: number): void {
    if (this.stopped) return
    const { clock } = this.engine.ports
    const now = clock.monotonic()
    const at = Math.max(now + ms, this.lookedAt + shortestPauseMs)
    if (at >= this.nextAt) return
    this.nextAt = at
    this.cancel?.()
    this.cancel = clock.after(at - now, () => void this.tick())
  }

  private async tick(): Promise<void> {
    try {
      await this.look()
    } catch (error) {
      this.engine.ports.logger.warn('Could not look for work to take over; looking again soon.', { error })
    }
  }

  private async look(): Promise<RecoveryCount> {
    this.isLooking = true
    this.nextAt = Number.POSITIVE_INFINITY
    let nextInMs = Number.POSITIVE_INFINITY
    try {
      const { next, tookOver } = await this.rescue()
      this.failed.over()
      nextInMs = next
      return tookOver
    } catch (error) {
      nextInMs = this.failed.met()
      throw error
    } finally {
      this.isLooking = false
      this.lookedAt = this.engine.ports.clock.monotonic()
      const { capabilities } = this.engine.store
      const longestMs = capabilities.notifies
        ? this.everyMs
        : Math.min(this.everyMs, this.engine.pollMs ?? unhintedMs, unhintedMs)
      const logMs = this.loggedAt - this.engine.clock.now()
      this.loggedAt = Number.POSITIVE_INFINITY
      this.schedule(Math.max(0, Math.min(nextInMs, longestMs, logMs)))
    }
  }

  private async rescue(): Promise<{ readonly next: number; readonly tookOver: RecoveryCount }> {
    const { engine, failures, workflows } = this
    const { maxCrashes } = this.options
    let [sessions, runs] = [0, 0]
    for (;;) {
      const rescued = await engine.store.rescue({ limit: runsAtOnce, maxCrashes, workflows, failures })
      const { next, suspects, now } = rescued
      engine.clock.observe(now)
      sessions += rescued.sessionsEnded
      if (rescued.sessionsEnded > 0) this.options.onDeath?.()
      runs += rescued.takenOver.length
      this.logRescued(rescued)
      if (rescued.more && !this.stopped) continue
      if (runs > 0) {
        engine.ports.logger.warn(recoveredLine(runs, sessions), { runs, sessions })
        engine.onReady()
      }
      if (!this.stopped) this.options.suspects(suspects === null ? null : suspects - now)
      return {
        next: this.pauseFor(next === null ? Number.POSITIVE_INFINITY : next - now),
        tookOver: { sessions, runs },
      }
    }
  }

  /** In how many milliseconds it looks again if the next lease, deadline or session runs out in this many. */
  private pauseFor(nextInMs: number): number {
    if (nextInMs <= 0) return this.contention.met()
    this.contention.over()
    return nextInMs
  }

  private logRescued({ ended, paused, takenOver }: Rescued): void {
    const { logger } = this.engine.ports
    for (const { runId, type, reason } of ended) {
      const how = reason === 'cancelled' ? 'The worker of a run that was being cancelled died' : 'A run was given up'
      logger.warn(`${how}: ${runId} is over (${reason}).`, { run: runId, type, reason })
      this.engine.runEnds.hinted(runId)
    }
    for (const { runId, type, crashes } of takenOver) {
      if (!paused.includes(runId)) continue
      const often = crashes === 1 ? 'once' : `${crashes} times in a row`
      const why = `Its process died ${often}, at last while it performed nothing else.`
      const line = pausedLine({ id: runId, type }, 'crashes', `${why} Find what ends the process, then resume the run.`)
      logger.error(line, {
        run: runId,
        type,
        crashes,
      })
    }
  }
}

function recoveredLine(runs: number, sessions: number): string {
  const many = runs === 1 ? '1 run' : `${runs} runs`
  // The worker may live, and have been silent about a run for longer than the lease of its workflow.
  if (sessions === 0) return `Recovered ${many} whose lease had run out.`
  return `Recovered ${many} from ${sessions === 1 ? 'a dead worker' : `${sessions} dead workers`}.`
}
