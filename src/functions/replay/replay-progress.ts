// The entries that the body has not seen yet. Until it has seen all of them, nothing new is begun or written. If it does not
// ask for a recorded call, and nothing else can move it on, then either it awaits a promise of its own or its code has
// changed. After a second a warning says so. A body that makes a call which it cannot have made then has changed, and is
// given up soon, and one that makes a call which the journal does not know, after minutes. Any other may still ask, so it is
// waited for, and the warning is repeated.

import type { Cancel } from '../../core/runtime/ports.ts'
import {
  driftGraceMs,
  hasChanged,
  hasUntraced,
  newerCode,
  pauseGraceMs,
  repeatMs,
  silenceMs,
  untracedGraceMs,
} from './drift.ts'
import type { Outcome } from './history.ts'
import { warnOfSilence } from '../api/misuse.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Settler } from './settler.ts'

export class ReplayProgress {
  private readonly state: FrameState
  private readonly settler: Settler
  private cancel: Cancel | null = null

  constructor(state: FrameState, settler: Settler) {
    this.state = state
    this.settler = settler
  }

  /** Nothing keeps the body from going on but itself. */
  private get isSilent(): boolean {
    const { isLive, history } = this.state
    return isLive && !history.isOver && !this.settler.resources.isBusy
  }

  /** Nothing could be settled: waits for the body, if it is its turn, and gives it up if its code has changed. */
  wait(): void {
    if (!this.isSilent || this.cancel !== null) return
    const { state, settler } = this
    this.after(silenceMs, (first) => {
      warnOfSilence(state.host, state.run, first, silenceMs)
      this.after(driftGraceMs - silenceMs, (unrequested) => {
        const entries = state.claim?.entries ?? []
        // Newer code wrote that entry, and the body makes a call that the journal does not know: it is older.
        const isOlder = newerCode(state, unrequested) !== null && hasUntraced(entries, settler.all())
        if (isOlder || hasChanged(entries, unrequested, settler.all())) state.frame.stuckAt(unrequested)
        else this.after(pauseGraceMs - driftGraceMs, () => state.frame.pausesReplay() || this.waitLonger())
      })
    })
  }

  private waitLonger(): void {
    const { state, settler } = this
    if (!hasUntraced(state.claim?.entries ?? [], settler.all())) return this.warnAgain(pauseGraceMs, repeatMs)
    this.after(untracedGraceMs - pauseGraceMs, (unrequested) => state.frame.stuckAt(unrequested))
  }

  /** It has been silent for that long, and makes no call that it cannot have made: only a promise of its own can move it on. */
  private warnAgain(silentMs: number, atMs: number): void {
    this.after(atMs - silentMs, (unrequested) => {
      warnOfSilence(this.state.host, this.state.run, unrequested, atMs)
      this.warnAgain(atMs, atMs + repeatMs)
    })
  }

  /** The body has been silent for so long. */
  private after(ms: number, next: (unrequested: Outcome) => void): void {
    this.cancel = this.state.host.ports.clock.after(ms, () => {
      this.cancel = null
      const unrequested = this.isSilent ? this.settler.unrequested() : undefined
      if (unrequested !== undefined) next(unrequested)
    })
  }

  /** The body moves. */
  goesOn(): void {
    this.cancel?.()
    this.cancel = null
  }
}
