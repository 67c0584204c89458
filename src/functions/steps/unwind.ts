// The way of a run that fails or is cancelled to the undo work of its steps.
//
//   gathering   the body is replayed, and begins nothing, until it has said how each of its steps is undone (undo-collector.ts)
//   draining    the attempts under way are awaited and recorded (functions/frame/drain.ts). An attempt that was under way when an
//               earlier process died is made once more, so that its result is known
//   unwinding   the steps are undone, last first (undo-runner.ts)

import type { Drain } from '../frame/drain.ts'
import type { FrameExit } from '../frame/frame-exit.ts'
import type { FrameParts } from '../frame/frame-parts.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Settler } from '../replay/settler.ts'
import type { StepRunner } from './step-runner.ts'
import { UndoCollector } from './undo-collector.ts'
import { UndoRunner } from './undo-runner.ts'

export class Unwinding {
  private readonly state: FrameState
  private readonly settler: Settler
  private readonly steps: StepRunner
  private readonly drain: Drain
  private readonly exit: FrameExit
  private collector: UndoCollector | null = null
  private runner: UndoRunner | null = null

  constructor({ state, settler, steps, drain, exit }: FrameParts) {
    this.state = state
    this.settler = settler
    this.steps = steps
    this.drain = drain
    this.exit = exit
  }

  /** The body, as it is replayed, may yet say how a step is undone: it has not come to where its journal ends. */
  get mayCollect(): boolean {
    return this.state.isReplaying && !this.steps.undoables.isComplete
  }

  begin(): void {
    if (this.mayCollect) return this.gather()
    const { exit } = this
    const stop = this.state.isCancelled ? () => exit.whyCancelled() : null
    // A body that could not be shown its journal has not said how all of its steps are undone.
    const isKept = this.collector?.isKept === true
    const go = isKept ? () => exit.undoLater() : () => this.unwind()
    this.drain.begin({ leave: exit.isUnread ? () => exit.pauseUnread() : go, stop })
  }

  gather(): void {
    const { state, settler, steps } = this
    state.gather()
    this.collector ??= new UndoCollector(state, settler, steps.undoables, () => this.hasCollectedAll())
    state.scheduleTurn()
  }

  hasCollectedAll(): void {
    this.state.endBody()
    this.begin()
  }

  /** The body goes on. */
  bodyGoesOn(): void {
    this.collector?.goesOn()
  }

  /** Undoes as far as it can now. */
  proceed(): void {
    this.runner?.proceed()
  }

  stop(reason: () => unknown): void {
    this.collector?.stop()
    this.runner?.stop(reason)
  }

  private unwind(): void {
    const { state, steps, exit } = this
    const { undoables } = steps
    if (!undoables.hasUnresolved) {
      state.unwind()
      this.runner ??= new UndoRunner(state, exit, undoables)
      return state.scheduleTurn()
    }
    if (exit.pauses(() => this.unwind())) return
    state.drain()
    state.writer.barrier(() => {
      if (state.phase !== 'draining') return
      for (const call of undoables.takeUnresolved()) steps.attemptAgain(call)
      this.drain.begin({ leave: () => this.unwind(), stop: null, isBounded: true })
    })
  }
}
