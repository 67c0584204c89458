// A body that is replayed so that it tells how its steps are undone. It may hang on something of its own, so it is not waited for
// for ever: no longer than the grace since it last went on.
//
// It may also be kept from telling by something that is away: a payload that is being fetched, or a resource that is being
// acquired, or could not be. That is nobody's fault, so nothing is given up for it: the run is released and looked at again,
// later each time (`Conclusion.undoLater`).

import type { Host } from '../../core/definition/definition.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import type { Phase } from '../frame/phase.ts'
import type { Resources } from './resources.ts'
import type { Settler } from '../replay/settler.ts'
import type { Undoables } from './undoables.ts'

interface UndoCollectorDeps {
  readonly host: Host
  readonly phase: Phase
  readonly settler: Settler
  readonly resources: Resources
  readonly undoables: Undoables
  /** It is known how the run ends. */
  readonly isEnding: boolean
  /** The body tells no more. */
  hasCollectedAll(): void
}

export class UndoCollector {
  private readonly deps: UndoCollectorDeps
  private movedAt = 0
  private cancel: Cancel | null = null

  constructor(deps: UndoCollectorDeps) {
    this.deps = deps
  }

  /** The body goes on: the grace counts anew. */
  goesOn(): void {
    const { clock } = this.deps.host.ports
    this.movedAt = clock.monotonic()
    this.cancel ??= clock.after(this.deps.host.abortGraceMs, this.look)
  }

  stop(): void {
    this.cancel?.()
    this.cancel = null
  }

  /** The body has not told all that has to be known, because of something that is away. */
  get isKept(): boolean {
    const { isEnding, undoables, settler, resources } = this.deps
    if (isEnding && undoables.isComplete) return false
    return settler.isFetching || resources.isBusy || resources.hasFailed
  }

  private readonly look = (): void => {
    this.cancel = null
    const { host, phase } = this.deps
    if (phase !== 'gathering') return
    const left = this.movedAt + host.abortGraceMs - host.ports.clock.monotonic()
    if (left > 0) this.cancel = host.ports.clock.after(Math.max(1, left), this.look)
    else this.deps.hasCollectedAll()
  }
}
