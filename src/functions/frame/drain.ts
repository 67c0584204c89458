// The one way out of a frame. Every end of the stay of a run in this process takes it, and no outcome of an attempt is
// dropped on it:
//
//   stop beginning     no attempt begins any more, and no call of the body settles
//   signal             the abort signals of attempts whose result is no longer needed are aborted
//   await and record   attempts under way may end, and their outcomes are recorded
//   leave              the run ends, undoes its steps, is tried again, is paused or given back
//
//   way out            aborts            waits for attempts under way
//   the body returned  nothing           as long as it takes: every step that the body has called takes place, as if it had
//                                        been awaited at the end (frame-calls.ts, `whenStepsEnd`)
//   the body is tried  nothing           as long as it takes, or up to the timeouts of the steps: the next attempt of the
//     again, or begins                   body finds the recorded outcomes
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
// Pause and shutdown are handled in frame.ts, because a pause may be withdrawn, and because the body goes on seeing recorded
// outcomes until it asks for more.
//
// An attempt that outlives its bound is abandoned: an entry says so, and its step is undone if it has an undo function,
// because its outcome is unknown. The same holds for an attempt of such a step that was aborted and threw. So that this is
// also known when the process dies meanwhile, no attempt of a step with undo begins before the journal names it (`begun`,
// functions/steps/step-runner.ts). A worker that takes the run over to end it attempts those steps once more before it undoes
// them. An attempt that was named and has not begun when the frame begins to leave is taken back by an `abandoned` entry with
// nothing to undo.
//
// A later way out takes the place of an earlier one: a run that is about to succeed can still be cancelled.

import type { Cancel } from '../../core/runtime/ports.ts'
import type { Phase } from './phase.ts'
import type { FrameApi } from './frame-api.ts'
import type { StepRunner } from '../steps/step-runner.ts'

interface DrainDeps extends FrameApi {
  readonly phase: Phase
  readonly steps: StepRunner
  /** Aborts the body and the attempts under way. Results of those attempts are still recorded. */
  abortBody(reason: unknown): void
  enterPhase(phase: 'draining'): void
}

export interface ExitPlan {
  /** Takes the last step of the way, when nothing is under way any more. */
  readonly leave: () => void
  /** Why attempts that are under way should stop; null if they should not. */
  readonly stop: (() => unknown) | null
  /** Attempts under way are not waited for longer than the grace. @default whether they are aborted */
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
    steps.stopBeginning()
    if (!steps.isBusy) return this.end(leave)
    deps.enterPhase('draining')
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
    if (deps.steps.isBusy || leave === null) return deps.writer.flush()
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
