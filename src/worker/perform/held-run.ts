// A run that moves in this process: its claim and its frame.

import type { Departure, DepartureListener, Frame } from '../../core/definition/definition.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import type { Cancel } from '../../core/runtime/ports.ts'

interface DepartureHandler {
  departed(held: HeldRun, how: Departure): void
}

/** A class, so that V8 never makes it in the old generation: see `ChurningMap`. */
export class HeldRun implements DepartureListener {
  readonly run: Run
  readonly lease: Lease
  readonly frame: Frame
  /** What begins when its departure was handled. */
  next: (() => void) | null = null
  /** When it was last known to be alive, for workflows whose claims have a deadline. */
  aliveAt: number
  /** Cancels the timer of the run's timeout; null if it has none. */
  cancelTimeout: Cancel | null = null
  /** Its slot is free already, because the commit with which it leaves is on its way. */
  hasVacated = false
  /** Its frame could not begin, and how that departs concerns no one. */
  isForgotten = false
  private readonly performer: DepartureHandler

  constructor(performer: DepartureHandler, run: Run, lease: Lease, frame: Frame, aliveAt: number) {
    this.performer = performer
    this.run = run
    this.lease = lease
    this.frame = frame
    this.aliveAt = aliveAt
  }

  departed(how: Departure): void {
    if (!this.isForgotten) this.performer.departed(this, how)
  }
}
