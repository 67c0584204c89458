// Wakes a frame at a point in store time while its run cannot park. One alarm at a time; setting it anew moves it.

import type { Host } from '../definition/definition.ts'
import type { Cancel } from './ports.ts'

/** The frame that an alarm wakes. */
interface AlarmFrame {
  readonly host: Host
  scheduleTurn(): void
}

export class Alarm {
  private readonly frame: AlarmFrame
  private at: number | null = null
  private cancel: Cancel | null = null

  constructor(frame: AlarmFrame) {
    this.frame = frame
  }

  /** Rings at that time, or never. */
  set(at: number | null): void {
    if (at === this.at) return
    this.cancel?.()
    this.at = at
    if (at === null) return
    const { host } = this.frame
    this.cancel = host.ports.clock.after(Math.max(0, at - host.now()), () => {
      this.at = null
      this.frame.scheduleTurn()
    })
  }
}
