// What the journal has and the body has not seen yet. Until the body has seen it all, nothing new is begun or written. If it
// does not ask for something that was recorded, and nothing else can move it on, it is given some time and then given up.

import type { Host } from '../core/definition.ts'
import type { Cancel } from '../core/ports.ts'
import { driftGraceMs } from './drift.ts'
import type { History, Outcome } from './history.ts'
import type { Resources } from './resources.ts'
import type { Settler } from './settler.ts'

interface Owner {
  readonly host: Host
  readonly history: History
  readonly settler: Settler
  readonly resources: Resources
  readonly isLive: boolean
  /** The journal has this, and the body does not ask for it. */
  stuckAt(unasked: Outcome): void
}

export class Replay {
  private readonly owner: Owner
  private cancel: Cancel | null = null

  constructor(owner: Owner) {
    this.owner = owner
  }

  get isOver(): boolean {
    return this.owner.history.next() === undefined
  }

  /** The journal has an outcome that no call of the body asks for, and nothing else can move the body on. */
  private get isStuck(): boolean {
    const { settler, resources, isLive } = this.owner
    return isLive && !this.isOver && settler.size > 0 && !resources.isBusy
  }

  /** Nothing could be settled: waits for the body, if it is its turn, and gives it up in the end. */
  wait(): void {
    if (!this.isStuck) return
    this.cancel ??= this.owner.host.ports.clock.after(driftGraceMs, () => {
      this.cancel = null
      const unasked = this.isStuck ? this.owner.settler.unasked() : undefined
      if (unasked !== undefined) this.owner.stuckAt(unasked)
    })
  }

  /** The body moves. */
  goesOn(): void {
    this.cancel?.()
    this.cancel = null
  }
}
