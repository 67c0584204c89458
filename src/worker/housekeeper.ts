// Does chores: the writes that an end or a broadcast has left, page by page. Every worker does this; the store ensures that
// no two workers do the same page. An error here is logged and affects nothing else: the chore is taken again later.
//
//   resting → working   a chore was left here or elsewhere; a worker was found dead, which may have left some; or it is time to
//                       look, because a hint may be lost
//   working → working   a page was done, and there may be more
//   working → resting   there is nothing to do, or an error came
//   any     → stopped   the page that is under way comes to its end

import type { Cancel } from '../core/runtime/ports.ts'
import type { Engine } from '../engine/engine.ts'

/** How often it looks without hints, unless `poll` is longer. A look is one read of an index that is nearly always empty. */
const usualMs = 60_000
/** However long `poll` is. */
const longestMs = 30 * 60_000
/** Another worker is doing the page, and will be done any moment. */
const leastMs = 100
/** The pause after an obstacle, before the page is asked for again. */
const soonMs = 5_000

export class Housekeeper {
  private readonly engine: Engine
  private readonly everyMs: number
  private isWorking = false
  /** A hint of more chores arrived while it worked. */
  private isAskedToLook = false
  private cancel: Cancel | null = null
  private stopped = false

  constructor(engine: Engine) {
    this.engine = engine
    this.everyMs = Math.min(Math.max(usualMs, engine.pollMs ?? 0), longestMs)
  }

  stop(): void {
    this.stopped = true
    this.cancel?.()
  }

  /** There may be a chore to do. */
  readonly look = (): void => {
    this.isAskedToLook = true
    if (!this.isWorking && !this.stopped) void this.work()
  }

  /** Until nothing is left that it may take; in how many milliseconds there is more. */
  private async doAll(): Promise<number> {
    const { everyMs } = this
    while (!this.stopped) {
      const { worked, nextInMs } = await this.engine.store.doChores()
      if (!worked) return Math.max(leastMs, Math.min(nextInMs ?? everyMs, everyMs))
    }
    return everyMs
  }

  private async work(): Promise<void> {
    this.isWorking = true
    this.cancel?.()
    let restMs = this.everyMs
    try {
      while (this.isAskedToLook && !this.stopped) {
        this.isAskedToLook = false
        restMs = await this.doAll()
      }
    } catch (error) {
      restMs = soonMs
      if (!this.stopped)
        this.engine.ports.logger.warn('Could not finish delivering ends of runs and broadcasts; trying again soon.', {
          error,
        })
    }
    this.isWorking = false
    if (!this.stopped) this.cancel = this.engine.ports.clock.after(restMs, this.look)
  }
}
