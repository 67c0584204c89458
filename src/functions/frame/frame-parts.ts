// The parts of a frame, each with the others that it works with. A part knows those above it in this list only, and reaches the
// frame itself through a port (`FrameDriver`). What each decides, and the state that is its own:
//
//   FrameState   where the frame is in its life, how its run is to end, and when the next turn comes
//   Resources    what the body holds, and when it is acquired and released
//   Settler      which call of the body settles next: the open calls, their outcomes, and those that the body has not heard of
//   Waits        when a wait begins, and when it is over: waits made, prepared and idle, and the mailbox
//   StepRunner   when an attempt begins, and what becomes of its result: attempts, held-back steps, and how steps are undone
//   Drain        when the frame has left: the attempts that it waits for, the abort signal of the body, its listener
//   FrameExit    how the run leaves: its last entries, and the reaction to the answer of the store
//
// The frame (frame.ts) decides what a turn does. Three more are made when they are needed: ReplayProgress (whether a replayed
// body has changed), Unwinding (the undo work) and Patches. The context of the body calls the parts directly, unless it is called
// from inside of a step (`caller`).

import type { Claim, Host } from '../../core/definition/definition.ts'
import { stepAround, stepMark, type CallingFunction } from '../../core/runtime/attempt.ts'
import { Patches } from '../api/patches.ts'
import type { CallSites } from '../replay/call-site.ts'
import { Settler } from '../replay/settler.ts'
import { Resources } from '../steps/resources.ts'
import { StepRunner } from '../steps/step-runner.ts'
import { Mailbox } from '../waits/mailbox.ts'
import { Waits } from '../waits/waits.ts'
import { Drain } from './drain.ts'
import { FrameExit } from './frame-exit.ts'
import { FrameState, type FrameDriver } from './frame-state.ts'
import type { FunctionBody } from './function-body.ts'

/** A refusal names at most this many steps, if it is not known which of them made the call. */
const mostSuspects = 3

export class FrameParts {
  readonly state: FrameState
  readonly settler: Settler
  readonly waits: Waits
  readonly steps: StepRunner
  readonly exit: FrameExit
  private patchList: Patches | null = null
  /** The code that is running was found to be outside of steps. */
  private isOutside = false

  constructor(frame: FrameDriver, body: FunctionBody, host: Host, claim: Claim, sites: CallSites | null) {
    const state = new FrameState(frame, body, host, claim, sites)
    this.state = state
    const resources = new Resources(state)
    this.settler = new Settler(state, resources)
    this.waits = new Waits(state, this.settler, new Mailbox(state, claim.run.inbox, claim.messages))
    this.steps = new StepRunner(state, this.settler, this.waits)
    const drain = new Drain(state, this.steps, resources)
    this.exit = new FrameExit(state, this.settler, this.waits, this.steps, drain)
  }

  get resources(): Resources {
    return this.settler.resources
  }

  get drain(): Drain {
    return this.exit.drain
  }

  /**
   * The function, mostly that of a step, from inside which the context is being called, also after an `await`; null if the
   * body itself calls. A replay does not call the functions of recorded steps, so they must not make calls of the body.
   */
  get caller(): CallingFunction | null {
    return this.state.performing ?? stepAround(this.state) ?? (this.steps.isBusy ? this.untrackedCaller() : null)
  }

  /** The same for steps without an async scope. A stack trace is expensive: synchronous code of the body is examined once. */
  private untrackedCaller(): CallingFunction | null {
    const { scopes } = this.state.host.ports
    if (this.isOutside || scopes?.isAwaitedBy === undefined) return null
    if (scopes.isAwaitedBy(stepMark)) {
      const open = this.settler.steps().filter(({ attempt }) => attempt?.isOpen === true)
      const suspects = open.map(({ name }) => name).slice(0, mostSuspects)
      return { kind: 'step', step: suspects.join('" or "') }
    }
    this.isOutside = true
    void Promise.resolve().then(() => (this.isOutside = false))
    return null
  }

  /** The changes of the code that are in effect in this run. */
  get patches(): Patches {
    this.patchList ??= new Patches(this.state)
    return this.patchList
  }
}
