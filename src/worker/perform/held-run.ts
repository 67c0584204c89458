// A run that moves in this process: its claim and its frame.

import type { Departure, DepartureListener, Frame } from '../../core/definition/definition.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import type { Engine } from '../../engine/engine.ts'

/** How soon the timeout of a run that is over time is reported to its frame again. */
const deadlineRetryMs = 1_000

interface DepartureHandler {
  departed(held: HeldRun, how: Departure): void
}

/** A class, so that V8 never makes it in the old generation: see `ChurningMap`. */
export class HeldRun implements DepartureListener {
  readonly run: Run
  readonly lease: Lease
  readonly frame: Frame
  /** Called when its departure was handled: begins the next claim of the run. */
  next: (() => void) | null = null
  /** When it was last known to be alive, for workflows whose claims have a deadline. */
  aliveAt: number
  /** Cancels the timer of the run's timeout; null if it has none. */
  cancelTimeout: Cancel | null = null
  /** Its slot is free already, because the commit with which it leaves is on its way. */
  hasVacated = false
  /** Its frame could not begin: its departure is ignored. */
  isForgotten = false
  private readonly performer: DepartureHandler

  constructor(performer: DepartureHandler, run: Run, lease: Lease, frame: Frame, aliveAt: number) {
    this.performer = performer
    this.run = run
    this.lease = lease
    this.frame = frame
    this.aliveAt = aliveAt
  }

  /** Reports the run when its time is over: the next heartbeat would report it too late. Never early, by the store's time. */
  watchTimeout(engine: Pick<Engine, 'clock' | 'ports'>, timedOut: (runId: string) => void): void {
    const { timeoutAt, id } = this.run
    if (timeoutAt === null) return
    const leftMs = timeoutAt - engine.clock.now()
    if (leftMs <= 0) timedOut(id)
    // A frame that just begins may not hear it, and a timer may run fast.
    const ms = leftMs <= 0 ? deadlineRetryMs : Math.max(1, leftMs)
    this.cancelTimeout = engine.ports.clock.after(ms, () => this.watchTimeout(engine, timedOut))
  }

  departed(how: Departure): void {
    if (!this.isForgotten) this.performer.departed(this, how)
  }
}
