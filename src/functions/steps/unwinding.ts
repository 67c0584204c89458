// The way of a run that fails or is cancelled to the undo work of its steps.
//
//   gathering   the body is replayed, and begins nothing, until it has told how each of its steps is undone (undo-collector.ts)
//   draining    the attempts under way are awaited and recorded (functions/frame/drain.ts). An attempt that was under way when an
//               earlier process died is made once more, so that its result is known
//   unwinding   the steps are undone, last first (undo-runner.ts)

import type { ExitPlan } from '../frame/drain.ts'
import type { FrameExit } from '../frame/frame-exit.ts'
import type { Phase } from '../frame/phase.ts'
import type { StepRunner } from './step-runner.ts'
import { UndoCollector, type UndoCollectorDeps } from './undo-collector.ts'
import { UndoRunner, type UndoRunnerDeps } from './undo-runner.ts'

interface UnwindingDeps extends UndoRunnerDeps, Omit<UndoCollectorDeps, 'hasCollectedAll'> {
  readonly phase: Phase
  readonly steps: StepRunner
  readonly frameExit: FrameExit
  readonly execution: { readonly hasBegun: boolean; hasEnded: boolean }
  readonly replay: { readonly isOver: boolean }
  /** The frame goes on in that phase. */
  enterPhase(phase: Phase): void
  /** Begins to leave: nothing new is begun, and attempts under way are awaited and recorded. */
  leaveBy(way: ExitPlan): void
}

export class Unwinding {
  private readonly deps: UnwindingDeps
  private collector: UndoCollector | null = null
  private runner: UndoRunner | null = null

  constructor(deps: UnwindingDeps) {
    this.deps = deps
  }

  /** The body, as it is replayed, may yet tell how a step is undone: it has not come to where its journal ends. */
  get mayCollect(): boolean {
    const { isLive, execution, replay, undoables } = this.deps
    const { hasBegun, hasEnded } = execution
    return isLive && !hasEnded && !(hasBegun && replay.isOver) && !undoables.isComplete
  }

  begin(): void {
    if (this.mayCollect) return this.gather()
    const { frameExit, isCancelled } = this.deps
    const stop = isCancelled ? () => frameExit.whyCancelled() : null
    // A body that could not be shown its journal has not told how all of its steps are undone.
    const isKept = this.collector?.isKept === true
    const go = isKept ? () => frameExit.undoLater() : () => this.unwind()
    this.deps.leaveBy({ leave: frameExit.isUnread ? () => frameExit.pauseUnread() : go, stop })
  }

  gather(): void {
    this.deps.enterPhase('gathering')
    this.collector ??= new UndoCollector(this.deps, () => this.hasCollectedAll())
    this.deps.scheduleTurn()
  }

  hasCollectedAll(): void {
    this.deps.execution.hasEnded = true
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
    const { deps } = this
    if (!deps.undoables.hasUnresolved) {
      deps.enterPhase('unwinding')
      this.runner ??= new UndoRunner(deps)
      return deps.scheduleTurn()
    }
    if (deps.frameExit.pauses(() => this.unwind())) return
    deps.enterPhase('draining')
    deps.writer.barrier(() => {
      if (deps.phase !== 'draining') return
      for (const call of deps.undoables.takeUnresolved()) deps.steps.attemptAgain(call)
      deps.leaveBy({ leave: () => this.unwind(), stop: null, isBounded: true })
    })
  }
}
