// How a body ends that does not throw: it returns, or its run begins anew. Every call that the body has made takes place before
// the run leaves, also one that it does not await, as if it had been awaited at the end.

import type { BodyEnd } from '../api/misuse.ts'
import type { RecordedEntry } from '../replay/history.ts'
import type { Settler } from '../replay/settler.ts'
import type { Waits } from '../waits/waits.ts'
import type { Drain } from './drain.ts'
import { warnOfForgottenCalls, warnOfSwallowedFailures } from './forgotten-calls.ts'
import type { FrameState } from './frame-state.ts'

/** The exit that the body takes. */
export interface LeavingFrame {
  readonly state: FrameState
  readonly settler: Settler
  readonly waits: Waits
  readonly drain: Drain
  outlast(next: () => void): void
  drifted(unrequested: RecordedEntry): void
}

/** Calls `leave` when nothing is under way any more. */
export function completeBody(exit: LeavingFrame, how: BodyEnd, leave: () => void): void {
  const { state, settler, waits, drain } = exit
  waits.beginMade()
  warnOfForgottenCalls(state, settler, waits)
  // Most bodies leave nothing behind.
  const hasNothing = settler.size === 0 && waits.preparing === 0 && waits.outlasted.size === 0
  if (hasNothing && state.history.isOver && state.history.begun.size === 0) {
    warnOfSwallowedFailures(state, settler, how)
    return leave()
  }
  const end = (): void => {
    const unrequested = settler.leftBehind()
    if (unrequested !== undefined) return exit.drifted(unrequested)
    warnOfSwallowedFailures(state, settler, how)
    drain.begin({ leave, stop: null })
  }
  waits.whenBegun(() => settler.whenStepsEnd(() => exit.outlast(end)))
}
