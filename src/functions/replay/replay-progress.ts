// The entries that the body has not seen yet. Until it has seen all of them, nothing new is begun or written. If it does not
// ask for a recorded call, and nothing else can move it on, then either it awaits a promise of its own or its code has
// changed. After a second a warning says so. A body that makes a call which it cannot have made then has changed, and is
// given up soon; one that does not is waited for much longer, and for ever if it makes no call.

import type { Claim, Host } from '../../core/definition/definition.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import type { Run } from '../../core/model/run.ts'
import { driftGraceMs, hasChanged, ownWorkMs, silenceMs } from './drift.ts'
import type { History, Outcome } from './history.ts'
import { warnOfSilence } from '../api/misuse.ts'
import type { Resources } from '../steps/resources.ts'
import type { Settler } from './settler.ts'

interface ReplayDeps {
  readonly host: Host
  readonly history: History
  readonly settler: Settler
  readonly resources: Resources
  /** The answer of the claim. */
  readonly claim: Claim | null
  readonly isLive: boolean
  readonly run: Run
  /** The journal has this, and the body does not ask for it. */
  stuckAt(unrequested: Outcome): void
}

export class ReplayProgress {
  private readonly deps: ReplayDeps
  private cancel: Cancel | null = null

  constructor(deps: ReplayDeps) {
    this.deps = deps
  }

  get isOver(): boolean {
    return this.deps.history.next() === undefined
  }

  /** Nothing keeps the body from going on but itself. */
  private get isSilent(): boolean {
    const { resources, isLive } = this.deps
    return isLive && !this.isOver && !resources.isBusy
  }

  /** Nothing could be settled: waits for the body, if it is its turn, and gives it up in the end. */
  wait(): void {
    if (!this.isSilent || this.cancel !== null) return
    const { deps } = this
    const reportStuck = (unrequested: Outcome): void => deps.stuckAt(unrequested)
    this.after(silenceMs, (first) => {
      warnOfSilence(deps.host, deps.run, first)
      // Only a promise of its own can move it on, and that may never settle.
      if (deps.settler.size === 0) return
      this.after(driftGraceMs - silenceMs, (unrequested) => {
        if (hasChanged(deps.claim?.entries ?? [], unrequested, deps.settler.all())) reportStuck(unrequested)
        else this.after(ownWorkMs - driftGraceMs, reportStuck)
      })
    })
  }

  /** The body has been silent for so long. */
  private after(ms: number, next: (unrequested: Outcome) => void): void {
    this.cancel = this.deps.host.ports.clock.after(ms, () => {
      this.cancel = null
      const unrequested = this.isSilent ? this.deps.settler.unrequested() : undefined
      if (unrequested !== undefined) next(unrequested)
    })
  }

  /** The body moves. */
  goesOn(): void {
    this.cancel?.()
    this.cancel = null
  }
}
