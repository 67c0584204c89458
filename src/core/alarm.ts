// Wakes a frame at a point in store time while its run cannot park. One alarm at a time; setting it anew moves it.

import type { Host } from './definition.ts'
import type { Cancel } from './ports.ts'

interface Owner {
  readonly host: Host
  stir(): void
}

export class Alarm {
  private readonly owner: Owner
  private at: number | null = null
  private cancel: Cancel | null = null

  constructor(owner: Owner) {
    this.owner = owner
  }

  /** Rings at that time, or never. */
  set(at: number | null): void {
    if (at === this.at) return
    this.cancel?.()
    this.at = at
    if (at === null) return
    const { host } = this.owner
    this.cancel = host.ports.clock.after(Math.max(0, at - host.now()), () => {
      this.at = null
      this.owner.stir()
    })
  }
}
