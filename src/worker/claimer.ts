// Asks the store for work whenever there may be some and a slot is free: when a hint or a freed slot wakes it, when the
// next run that it knows of comes due, and now and then in any case, because hints may be lost.

import { growingPauses } from '../core/pause.ts'
import type { Cancel } from '../core/ports.ts'
import type { Engine } from '../engine/engine.ts'
import type { Selector } from '../store.ts'
import type { Performer } from './performer.ts'
import type { Slots } from './slots.ts'

export class Claimer {
  private readonly engine: Engine
  private readonly slots: Slots
  private readonly performer: Performer
  private readonly selectors: readonly Selector[]
  private readonly pollMs: number
  private state: 'idle' | 'woken' | 'claiming' | 'stopped' = 'idle'
  private wokenMeanwhile = false
  /** The last claim left some that were ready. */
  private backlogged = false
  /** There may be something to claim, but no slot was free. */
  private starved = false
  private cancelTimer: Cancel | null = null
  private pause: (() => Promise<void>) | null = null
  private stopping: (() => void) | null = null

  constructor(
    engine: Engine,
    slots: Slots,
    performer: Performer,
    options: { readonly selectors: readonly Selector[]; readonly pollMs: number },
  ) {
    this.engine = engine
    this.slots = slots
    this.performer = performer
    this.selectors = options.selectors
    this.pollMs = options.pollMs
  }

  /** Others have waited longer than a run that is started now. */
  get hasBacklog(): boolean {
    return this.backlogged
  }

  /** A slot was freed. */
  slotFreed(): void {
    if (this.backlogged || this.starved) this.wake()
  }

  start(): void {
    this.wake()
  }

  /** Claims soon; however often it is called meanwhile, once. */
  readonly wake = (): void => {
    if (this.state === 'claiming') this.wokenMeanwhile = true
    if (this.state !== 'idle') return
    this.state = 'woken'
    this.engine.ports.turns.next(() => {
      if (this.state === 'woken') void this.claim()
    })
  }

  /** Settles when no claim is on its way any more. */
  stop(): Promise<void> {
    this.cancelTimer?.()
    const wasClaiming = this.state === 'claiming'
    this.state = 'stopped'
    return wasClaiming ? new Promise((resolve) => (this.stopping = resolve)) : Promise.resolve()
  }

  private async claim(): Promise<void> {
    const { engine, slots, selectors } = this
    this.starved = slots.free === 0
    if (this.starved) {
      this.state = 'idle'
      return
    }
    // Half of the free slots, so that runs that are started here meanwhile find one, too.
    const limit = Math.ceil(slots.free / 2)
    this.state = 'claiming'
    this.cancelTimer?.()
    slots.take(limit)
    let begun = 0
    let dueInMs: number | null = null
    try {
      const { session } = engine
      const { runs, more, nextDue, now } = await engine.store.claim({ session, selectors, limit })
      engine.clock.observe(now)
      begun = runs.length
      this.backlogged = more
      dueInMs = nextDue === null ? null : nextDue - now
      this.pause = null
      await this.performer.beginAll(runs)
    } catch (error) {
      engine.ports.logger.warn('The store did not give out work; asking again soon.', { error })
      this.pause ??= growingPauses(engine.ports)
      await this.pause()
    }
    slots.give(limit - begun)
    this.rest(dueInMs)
  }

  private rest(dueInMs: number | null): void {
    if ((this.state as string) === 'stopped') {
      this.stopping?.()
      return
    }
    this.state = 'idle'
    if (this.wokenMeanwhile || this.backlogged || this.pause !== null) {
      this.wokenMeanwhile = false
      return this.wake()
    }
    const ms = Math.max(0, Math.min(this.pollMs, dueInMs ?? this.pollMs))
    this.cancelTimer = this.engine.ports.clock.after(ms, this.wake)
  }
}
