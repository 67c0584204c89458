// Asks the store for work whenever there may be some and a slot is free: when a hint or a freed slot wakes it, when the
// next run that it knows of comes due, and now and then in any case, because hints may be lost.

import { isHoldfastError, type HoldfastError } from '../core/error.ts'
import { growingPauses } from '../core/pause.ts'
import { randomFraction, type Cancel } from '../core/ports.ts'
import type { Engine } from '../engine/engine.ts'
import type { ClaimSelector } from '../store.ts'
import type { Performer } from './performer.ts'
import type { Slots } from './slots.ts'

const shortestPollMs = 25

export interface ClaimerOptions {
  readonly selectors: readonly ClaimSelector[]
  readonly pollMs: number
  /** The store does not work with this code any more. */
  readonly refused: (reason: HoldfastError) => void
}

export class Claimer {
  private readonly engine: Engine
  private readonly slots: Slots
  private readonly performer: Performer
  private readonly selectors: readonly ClaimSelector[]
  private readonly longestPollMs: number
  private readonly refused: ClaimerOptions['refused']
  private pollMs: number
  private paused = false
  private state: 'idle' | 'woken' | 'claiming' | 'stopped' = 'idle'
  private wokenMeanwhile = false
  /** The last claim left some that were ready. */
  private backlogged = false
  /** There may be something to claim, but no slot was free. */
  private starved = false
  private cancelTimer: Cancel | null = null
  private backOff: (() => Promise<void>) | null = null
  private stopping: (() => void) | null = null

  constructor(engine: Engine, slots: Slots, performer: Performer, options: ClaimerOptions) {
    this.engine = engine
    this.slots = slots
    this.performer = performer
    this.selectors = options.selectors
    this.longestPollMs = Math.max(1, options.pollMs)
    this.refused = options.refused
    this.pollMs = this.firstPollMs
  }

  /** Others have waited longer than a run that is started now. */
  get hasBacklog(): boolean {
    return this.backlogged
  }

  /** Takes nothing until it is resumed. */
  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
    this.wake()
  }

  get isPaused(): boolean {
    return this.paused
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
    if (this.starved || this.paused) {
      this.state = 'idle'
      return
    }
    // Half of the free slots, so that runs that are started here meanwhile find one, too; but while others wait longer,
    // none is begun at its start.
    const limit = this.backlogged ? slots.free : Math.ceil(slots.free / 2)
    this.state = 'claiming'
    this.cancelTimer?.()
    slots.take(limit)
    let begun = 0
    let dueInMs: number | null = null
    try {
      const { session } = engine
      const { runs, fresh, more, nextDue, now } = await engine.store.claim({ session, selectors, limit })
      engine.clock.observe(now)
      begun = runs.length
      if (begun > 0) this.pollMs = this.firstPollMs
      this.backlogged = more
      dueInMs = nextDue === null ? null : nextDue - now
      this.backOff = null
      await this.performer.beginAll(runs, fresh)
    } catch (error) {
      if (isHoldfastError(error, 'SCHEMA_TOO_NEW')) this.refused(error)
      else engine.ports.logger.warn('The store did not give out work; asking again soon.', { error })
      this.backOff ??= growingPauses(engine.ports)
      await this.backOff()
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
    if (this.wokenMeanwhile || this.backlogged || this.backOff !== null) {
      this.wokenMeanwhile = false
      return this.wake()
    }
    const jittered = Math.round(this.pollMs * (0.75 + 0.5 * randomFraction(this.engine.ports.random)))
    this.pollMs = Math.min(this.longestPollMs, 2 * this.pollMs)
    const ms = Math.max(0, dueInMs === null ? jittered : Math.min(jittered, dueInMs))
    this.cancelTimer = this.engine.ports.clock.after(ms, this.wake)
  }

  /** A store that tells of new work is asked seldom; any other often at first, and less and less while nothing comes. */
  private get firstPollMs(): number {
    return this.engine.store.capabilities.notifies ? this.longestPollMs : Math.min(shortestPollMs, this.longestPollMs)
  }
}
