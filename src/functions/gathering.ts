// A body that is replayed so that it tells how its steps are undone. It may hang on something of its own, so it is not waited for
// for ever: no longer than the grace since it last went on.
//
// It may also be kept from telling by something that is away: a payload that is being fetched, or a resource that is being
// acquired, or could not be. That is nobody's fault, so nothing is given up for it: the run is released and looked at again,
// later each time (`Conclusion.undoLater`).

import type { Host } from '../core/definition.ts'
import type { Cancel } from '../core/ports.ts'
import type { Phase } from './phase.ts'
import type { Resources } from './resources.ts'
import type { Settler } from './settler.ts'
import type { Undoables } from './undoables.ts'

interface Owner {
  readonly host: Host
  readonly phase: Phase
  readonly settler: Settler
  readonly resources: Resources
  readonly undoables: Undoables
  /** It is known how the run ends. */
  readonly isEnding: boolean
  /** The body tells no more. */
  hasToldAll(): void
}

export class Gathering {
  private readonly owner: Owner
  private movedAt = 0
  private cancel: Cancel | null = null

  constructor(owner: Owner) {
    this.owner = owner
  }

  /** The body goes on: the grace counts anew. */
  goesOn(): void {
    const { clock } = this.owner.host.ports
    this.movedAt = clock.monotonic()
    this.cancel ??= clock.after(this.owner.host.abortGraceMs, this.look)
  }

  stop(): void {
    this.cancel?.()
    this.cancel = null
  }

  /** The body has not told all that has to be known, because of something that is away. */
  get isKept(): boolean {
    const { isEnding, undoables, settler, resources } = this.owner
    if (isEnding && undoables.isComplete) return false
    return settler.isFetching || resources.isBusy || resources.hasFailed
  }

  private readonly look = (): void => {
    this.cancel = null
    const { host, phase } = this.owner
    if (phase !== 'gathering') return
    const left = this.movedAt + host.abortGraceMs - host.ports.clock.monotonic()
    if (left > 0) this.cancel = host.ports.clock.after(Math.max(1, left), this.look)
    else this.owner.hasToldAll()
  }
}
