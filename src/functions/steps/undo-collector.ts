// A body that is replayed to collect the undo functions of its steps. It may hang on a promise of its own, so it is not
// awaited for ever: no longer than the grace since it last went on.
//
// The body may also be prevented from reporting: a payload is still being fetched, or a resource is being acquired, or could
// not be. Neither is an error of the run, so nothing is given up for it: the run is released and tried again, later each time
// (`FrameExit.undoLater`).

import type { Cancel } from '../../core/runtime/ports.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Settler } from '../replay/settler.ts'
import type { Undoables } from './undoables.ts'

export class UndoCollector {
  private readonly state: FrameState
  private readonly settler: Settler
  private readonly undoables: Undoables
  private readonly ended: () => void
  private movedAt = 0
  private cancel: Cancel | null = null

  /** `ended` is called when the body reports nothing more. */
  constructor(state: FrameState, settler: Settler, undoables: Undoables, ended: () => void) {
    this.state = state
    this.settler = settler
    this.undoables = undoables
    this.ended = ended
  }

  /** The body goes on: the grace counts anew. */
  goesOn(): void {
    const { clock } = this.state.host.ports
    this.movedAt = clock.monotonic()
    this.cancel ??= clock.after(this.state.host.abortGraceMs, this.look)
  }

  stop(): void {
    this.cancel?.()
    this.cancel = null
  }

  /** Not all undo functions are collected, because a payload or a resource is unavailable. */
  get isKept(): boolean {
    const { state, undoables, settler } = this
    const { resources } = settler
    // It is known how the run ends.
    if (state.ending !== null && undoables.isComplete) return false
    return settler.isFetching || resources.isBusy || resources.hasFailed
  }

  private readonly look = (): void => {
    this.cancel = null
    const { host, phase } = this.state
    if (phase !== 'gathering') return
    const left = this.movedAt + host.abortGraceMs - host.ports.clock.monotonic()
    if (left > 0) this.cancel = host.ports.clock.after(Math.max(1, left), this.look)
    else this.ended()
  }
}
