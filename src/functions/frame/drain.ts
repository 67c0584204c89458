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
//     or begins anew                     been awaited at the end (complete-body.ts, `Settler.whenStepsEnd`)
//   the body is tried  nothing           as long as it takes, or up to the timeouts of the steps: the next attempt of the
//     again                              body finds the recorded outcomes
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
// Pause and shutdown are handled in frame.ts and frame-exit.ts, because a pause may be withdrawn, and because the body goes on seeing recorded
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

import type { Departure, DepartureListener } from '../../core/definition/definition.ts'
import { LazyAbortSignal } from '../../core/runtime/lazy-abort-signal.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import { silentListener } from '../../core/runtime/silent-host.ts'
import type { Resources } from '../steps/resources.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import type { FrameState } from './frame-state.ts'

export interface ExitPlan {
  /** Takes the last step of the way, when nothing is under way any more. */
  readonly leave: () => void
  /** Why attempts that are under way should stop; null if they should not. */
  readonly stop: (() => unknown) | null
  /** Attempts under way are not waited for longer than the grace. @default whether they are aborted */
  readonly isBounded?: boolean
}

/** One for all frames: a departure needs a later moment, and no promise of its own. */
const settled = Promise.resolve()

export class Drain {
  private readonly state: FrameState
  private readonly steps: StepRunner
  private readonly resources: Resources
  private leave: (() => void) | null = null
  private cancelGrace: Cancel | null = null
  /** Asks the body to stop, once it has asked for it. */
  private signal: LazyAbortSignal | null = null
  /** Silent before the frame has begun, and after it has left. */
  private listener = silentListener

  constructor(state: FrameState, steps: StepRunner, resources: Resources) {
    this.state = state
    this.steps = steps
    this.resources = resources
  }

  /** The departure of the frame goes to this listener. */
  listen(listener: DepartureListener): void {
    this.listener = listener
  }

  /** Aborts when the body should stop. */
  get abortSignal(): AbortSignal {
    this.signal ??= new LazyAbortSignal()
    return this.signal.abortSignal
  }

  /** Begins to leave; leaves at once if nothing is under way. */
  begin({ leave, stop, isBounded = stop !== null }: ExitPlan): void {
    const { state, steps } = this
    state.wakeAt(null)
    if (stop !== null) this.abortBody(stop())
    steps.stopBeginning()
    if (!steps.isBusy) return this.finish(leave)
    state.drain()
    this.leave = leave
    state.writer.flush()
    if (!isBounded || this.cancelGrace !== null) return
    this.cancelGrace = state.host.ports.clock.after(state.host.abortGraceMs, () => {
      this.cancelGrace = null
      if (state.phase === 'draining') steps.abandon()
    })
  }

  /** Leaves, if nothing is under way any more. */
  proceed(): void {
    const { steps, leave } = this
    if (steps.isBusy || leave === null) return this.state.writer.flush()
    this.finish(leave)
  }

  /** Aborts the body and the attempts under way. Results of those attempts are still recorded. */
  abortBody(reason: unknown): void {
    this.steps.signalAbort(reason)
    this.signal ??= new LazyAbortSignal()
    this.signal.signalAbort(reason)
  }

  private finish(leave: () => void): void {
    this.forget()
    leave()
  }

  private forget(): void {
    this.leave = null
    this.cancelGrace?.()
    this.cancelGrace = null
  }

  /** The body goes no further: the last commit is about to be sent. If it may yet be called back, nothing is aborted. */
  leaving(isCertain = true): void {
    const { state } = this
    state.leave()
    if (isCertain)
      this.stop(() => new Error(`The body of run ${state.runId} has ended: nothing waits for this step any more.`))
  }

  private stop(reason: () => unknown): void {
    this.state.wakeAt(null)
    this.forget()
    this.state.frame.stop(reason)
    this.steps.abort(reason)
    if (this.signal !== null) this.signal.signalAbort(reason())
  }

  /** Gives the run back here, if that was asked for: the lease still stands. */
  givesBack(): boolean {
    const { state } = this
    if (!state.isGivingBack) return false
    const leave = (): void => {
      if (state.isLive || state.phase === 'unwinding') this.gone({ kind: 'given-back' })
    }
    // Outcomes that the body has not seen yet are shown by the next holder, and until then nothing new counts.
    if (state.history.isOver) state.writer.barrier(leave)
    else leave()
    return true
  }

  /** The lease is gone, and the run waits. */
  parked(): void {
    // A resource lives no longer than a stay in memory, so the body that holds one must be replayed to get a fresh one.
    this.state.rest(!this.resources.areHeld)
    this.departAs({ kind: 'parked' })
  }

  /** The run is not this frame's any more. */
  gone(departure: Departure): void {
    this.state.end()
    this.departAs(departure)
  }

  /** Nothing more can be written. */
  lost(reason: unknown): void {
    const { state } = this
    if (state.phase === 'gone') return
    state.end()
    this.stop(() => reason)
    void this.resources.releaseAll().then(() => this.depart({ kind: 'lost', reason }))
  }

  private departAs(departure: Departure): void {
    if (this.resources.areHeld) void this.resources.releaseAll().then(() => this.depart(departure))
    else this.depart(departure)
  }

  private depart(departure: Departure): void {
    const { listener } = this
    this.listener = silentListener
    // Not at once: the frame is still in the middle of its own work.
    void settled.then(() => listener.departed(departure))
  }
}
