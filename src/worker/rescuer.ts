// Looks for holders that died and takes their runs over, and ends runs whose time is over. Every worker does this; the
// store sees to it that each run is taken over once. An error here is logged and harms nothing but the time until the
// next look.

import { HoldfastError } from '../core/error.ts'
import type { Cancel } from '../core/ports.ts'
import type { Engine } from '../engine/engine.ts'
import type { RescueFailure } from '../store.ts'

export interface TookOver {
  /** How many sessions were found dead. */
  readonly sessions: number
  /** How many runs were taken from holders that died. */
  readonly runs: number
}

/** A run whose holders died so many times in a row is given up. */
const maxCrashes = 5
const runsAtOnce = 500
/** Its own session is often what would run out next, and a beat will come before that. */
const shortestPauseMs = 100
/** After an error: a database that restarts is back in seconds, and whoever waits has waited a whole lease already. */
const soonMs = 1_000

export class Rescuer {
  private readonly engine: Engine
  private readonly everyMs: number
  private readonly failures: Readonly<Record<RescueFailure, string>>
  private nextInMs: number | null = null
  private cancel: Cancel | null = null
  private stopped = false

  constructor(engine: Engine, leaseMs: number) {
    this.engine = engine
    this.everyMs = leaseMs / 2
    // One text for any number of runs: it has no place that a codec could bind it to.
    const { payloads } = engine
    this.failures = {
      crashed: payloads.plain(
        new HoldfastError(
          'RUN_CRASHED',
          `The process that performed this run died ${maxCrashes} times in a row, so it is not tried again. ` +
            'Look for what ends the process: memory, a native module, process.exit.',
        ),
      ),
      'timed-out': payloads.plain(
        new HoldfastError('RUN_TIMEOUT', 'This run had not ended when the time that its start allowed was over.'),
      ),
      expired: payloads.plain(
        new HoldfastError('RUN_EXPIRED', 'Nobody had begun this run when the time that its start allowed was over.'),
      ),
    }
  }

  /** Looks once, and then regularly. Gives back what the first look took over. */
  async start(): Promise<TookOver> {
    const tookOver = await this.rescue()
    this.schedule()
    return tookOver
  }

  stop(): void {
    this.stopped = true
    this.cancel?.()
  }

  /** The next look comes when something is known to run out, and now and then in any case. */
  private schedule(): void {
    if (this.stopped) return
    const ms = Math.min(this.everyMs, Math.max(this.nextInMs ?? this.everyMs, shortestPauseMs))
    this.cancel = this.engine.ports.clock.after(ms, () => void this.tick())
  }

  private async tick(): Promise<void> {
    try {
      await this.rescue()
    } catch (error) {
      this.engine.ports.logger.warn('Could not look for work to take over; looking again soon.', { error })
      this.nextInMs = soonMs
    }
    this.schedule()
  }

  private async rescue(): Promise<TookOver> {
    const { engine, failures } = this
    let [sessions, runs, more] = [0, 0, true]
    while (more && !this.stopped) {
      const rescued = await engine.store.rescue({ limit: runsAtOnce, maxCrashes, failures })
      sessions += rescued.sessionsEnded
      runs += rescued.takenOver.length
      more = rescued.more
      this.nextInMs = rescued.next === null ? null : rescued.next - rescued.now
      for (const { runId, type, reason } of rescued.ended) {
        const how = reason === 'cancelled' ? 'The holder of a run that was being cancelled died' : 'A run was given up'
        engine.ports.logger.warn(`${how}: ${runId} is over (${reason}).`, { run: runId, type, reason })
        engine.endings.hinted(runId)
      }
    }
    if (runs > 0) {
      engine.ports.logger.warn(`Took over ${runs} of the runs of holders that died.`, { runs, sessions })
      engine.onReady()
    }
    return { sessions, runs }
  }
}
