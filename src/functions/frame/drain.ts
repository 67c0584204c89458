// The one way out of a frame. Whatever ends the stay of a run in this process, it goes the same way, and nothing that
// happened in the world is dropped on it:
//
//   stop beginning     no attempt begins any more, and no call of the body settles
//   signal             attempts that are of no use any more are told to stop, through their abort signals
//   await and record   what is under way may end, and what comes of it is recorded
//   leave              the run ends, undoes its steps, is tried again, is paused or given back
//
//   way out            is told to stop   waits for what is under way
//   the body returned  nothing           as long as it takes: whatever step the body has called takes place, as if it had
//                                        been awaited at the end (frame-calls.ts, `whenStepsEnd`)
//   the body is tried  nothing           as long as it takes, or up to the timeouts of the steps: the next attempt of the
//     again, or begins                   body finds what was recorded
//     anew
//   the run fails, is  everything        up to the grace that the worker gives
//     out of time, or
//     is cancelled
//   code and journal   nothing           as long as it takes
//     disagree, or a
//     payload cannot
//     be read
//   pause              nothing           as long as it takes, or up to the timeouts of the steps
//   shutdown           nothing           up to the worker's shutdown timeout
//
// Pause and shutdown are told in frame.ts, because a pause may be taken back, and because the body sees what is recorded
// until it asks for more.
//
// An attempt that outlives its bound is abandoned: an entry says so, and its step is undone if it can be, because nobody
// knows whether it happened. The same holds for an attempt that was told to stop and threw, if its step can be undone. So
// that this is also known when the process dies meanwhile, no attempt of a step that can be undone begins before the journal
// says so (`begun`, functions/steps/step-runner.ts). Whoever takes the run over to end it attempts those once more before it undoes them. What
// was named and has not begun when the frame begins to leave is taken back by an `abandoned` entry with nothing to undo.
//
// A later way out takes the place of an earlier one: a run that is about to succeed can still be cancelled.

import type { Cancel } from '../../core/runtime/ports.ts'
import type { Phase } from './phase.ts'
import type { FrameApi } from './frame-api.ts'
import type { StepRunner } from '../steps/step-runner.ts'

interface DrainDeps extends FrameApi {
  phase: Phase
  readonly steps: StepRunner
  /** Tells the body, and what is under way, to stop. What it gives back still counts. */
  abortBody(reason: unknown): void
}

export interface ExitPlan {
  /** Takes the last step of the way, when nothing is under way any more. */
  readonly leave: () => void
  /** Why attempts that are under way should stop; null if they should not. */
  readonly stop: (() => unknown) | null
  /** What is under way is not waited for longer than the grace. @default whether it is told to stop */
  readonly isBounded?: boolean
}

export class Drain {
  private readonly deps: DrainDeps
  private leave: (() => void) | null = null
  private cancelGrace: Cancel | null = null

  constructor(deps: DrainDeps) {
    this.deps = deps
  }

  /** Begins to leave; leaves at once if nothing is under way. */
  begin({ leave, stop, isBounded = stop !== null }: ExitPlan): void {
    const { deps } = this
    const { steps } = deps
    if (stop !== null) deps.abortBody(stop())
    steps.takeBackNamed()
    deps.busy = steps.open
    if (deps.busy === 0) return this.end(leave)
    deps.phase = 'draining'
    this.leave = leave
    deps.writer.flush()
    if (!isBounded || this.cancelGrace !== null) return
    this.cancelGrace = deps.host.ports.clock.after(deps.host.abortGraceMs, () => {
      this.cancelGrace = null
      if (deps.phase === 'draining') steps.abandon()
    })
  }

  /** Leaves, if nothing is under way any more. */
  proceed(): void {
    const { deps, leave } = this
    if (deps.busy > 0 || leave === null) return deps.writer.flush()
    this.end(leave)
  }

  /** The frame is gone: nothing is waited for. */
  stop(): void {
    this.leave = null
    this.cancelGrace?.()
    this.cancelGrace = null
  }

  private end(leave: () => void): void {
    this.stop()
    leave()
  }
}
