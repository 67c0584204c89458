// Asks the store for work whenever there may be some and a slot is free: when a hint or a freed slot wakes it, when the
// next run that it knows of comes due, and now and then in any case, because hints may be lost.
//
//   idle      asks nothing. A hint, a start here or a timer wakes it; a freed slot does if it knows of work that waits.
//   woken     asks in the next turn, once, however often it was woken; with no free slot it is idle again, and starved.
//   claiming  waits for the answer, with as many slots taken as it asked for. A wake-up now makes it ask again.
//   stopped   asks no more. The runs of the last claim are given back.
//
// Types of equal priority take turns, in a claim and from claim to claim (`type-rotation.ts`): a backlog of one type does not
// block another.
//
// While it is backlogged it also claims runs ahead, for which no slot is free yet (`prefetch.ts`): those begin as soon as slots
// are freed, regardless of the state of the claimer.
//
// The answer of a claim decides when the next one is made:
//
//   runs, and more are left    backlogged: it asks again as soon as a slot is free
//   no runs, but some are left contended (`contention.ts`): other transactions hold the rows of all that are ready or have come
//                              due. It asks again after a pause, longer each time, and no freed slot shortens that; a hint
//                              does, because it reports new work
//   runs or none, none left    it rests until it is woken or until the next run comes due
//   an error                   it asks again after a pause, longer each time

import { isHoldfastError, type HoldfastError } from '../../core/errors/error.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import { randomFraction, type Cancel } from '../../core/runtime/ports.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Run } from '../../core/model/run.ts'
import type { ClaimSelector, HeldClaim } from '../../store.ts'
import { Prefetch, type Batch } from './prefetch.ts'
import { Contention } from '../contention.ts'
import type { KnownKeys } from './known-keys.ts'
import type { Performer } from '../perform/performer.ts'
import { Rotation } from './type-rotation.ts'
import type { Slots } from '../perform/slots.ts'

const shortestPollMs = 25

export interface ClaimerOptions {
  readonly selectors: readonly ClaimSelector[]
  readonly pollMs: number
  readonly keys: KnownKeys
  /** The store does not work with this code any more. */
  readonly refused: (reason: HoldfastError) => void
  /** A claim failed, and may have leased runs all the same. */
  readonly unanswered: () => void
  /** Called when nothing more was found to claim. */
  readonly rested: () => void
}

export class Claimer {
  private readonly engine: Engine
  private readonly slots: Slots
  private readonly performer: Performer
  private readonly rotation: Rotation
  private readonly keys: KnownKeys
  private readonly longestPollMs: number
  private readonly refused: ClaimerOptions['refused']
  private readonly rested: ClaimerOptions['rested']
  private readonly unanswered: ClaimerOptions['unanswered']
  private readonly prefetch: Prefetch
  /** The deadline of a claim would pass while its run waits for a slot. */
  private readonly mayPrefetch: boolean
  private hasToFill = false
  /** Runs that were controlled while a claim was on its way: it may have leased them before that. */
  private readonly controlledMeanwhile = new Set<string>()
  /** Runs that ended while a claim was on its way, likewise. */
  private readonly endedMeanwhile = new Set<string>()
  private pollMs: number
  private paused = false
  private state: 'idle' | 'woken' | 'claiming' | 'stopped' = 'idle'
  private wokenMeanwhile = false
  /** The last claim left some that were ready. */
  private backlogged = false
  private readonly contention: Contention
  /** There may be a run to claim, but no slot was free. */
  private starved = false
  private cancelTimer: Cancel | null = null
  private backOff: (() => Promise<void>) | null = null
  private stopping: (() => void) | null = null

  constructor(engine: Engine, slots: Slots, performer: Performer, options: ClaimerOptions) {
    this.engine = engine
    this.slots = slots
    this.performer = performer
    this.rotation = new Rotation(options.selectors)
    this.keys = options.keys
    this.longestPollMs = Math.max(1, options.pollMs)
    this.refused = options.refused
    this.rested = options.rested
    this.unanswered = options.unanswered
    this.contention = new Contention(engine.ports.random)
    this.prefetch = new Prefetch(engine.ports.clock, (run) => performer.decline(run))
    this.mayPrefetch = options.selectors.every(({ leaseMs }) => leaseMs === null)
    this.pollMs = this.firstPollMs
  }

  /** Other runs have waited longer than a run that is started now. */
  get hasBacklog(): boolean {
    return this.backlogged || this.contention.isMet
  }

  /** Takes nothing until it is resumed. */
  pause(): void {
    this.paused = true
    this.prefetch.clear()
  }

  resume(): void {
    this.paused = false
    this.wake()
  }

  get isPaused(): boolean {
    return this.paused
  }

  /** Nothing is being claimed, and nothing is known to wait for that. */
  get isIdle(): boolean {
    return this.state === 'idle' && !this.paused && !this.backlogged && !this.starved && this.prefetch.size === 0
  }

  /** Runs that were claimed ahead are about to begin. */
  get isFilling(): boolean {
    return this.prefetch.size > 0 && this.slots.free > 0
  }

  /** Whether that run was claimed and waits for a slot. */
  holds(runId: string): boolean {
    return this.prefetch.has(runId)
  }

  /** The claims of runs that wait for a slot. */
  claims(): readonly HeldClaim[] {
    return this.prefetch.claims()
  }

  /** A claim is lost: its run does not begin here. Returns whether it waited for a slot. */
  drop(runId: string, token: number): boolean {
    return this.prefetch.drop(runId, (run) => run.token === token)
  }

  /** A run has ended: it does not begin here, not even if the answer of a claim brings it along. */
  ended(runId: string): void {
    if (this.state === 'claiming') this.endedMeanwhile.add(runId)
    this.prefetch.drop(runId, () => true)
  }

  /** An operator has controlled a run: it does not begin here, not even if the answer of a claim brings it along. */
  controlRequested(runId: string): void {
    if (this.state === 'claiming') this.controlledMeanwhile.add(runId)
    this.prefetch.drop(runId, isUnaware)
  }

  /** A slot was freed. */
  slotFreed(): void {
    this.prefetch.slotFreed()
    if (this.prefetch.size > 0 && !this.hasToFill) {
      this.hasToFill = true
      this.engine.ports.turns.next(this.fill)
    }
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
    this.prefetch.clear()
    const wasClaiming = this.state === 'claiming'
    this.state = 'stopped'
    return wasClaiming ? new Promise((resolve) => (this.stopping = resolve)) : Promise.resolve()
  }

  private async claim(): Promise<void> {
    const { engine, slots } = this
    const selectors = this.performer.claimable(this.rotation.selectors)
    this.fill()
    const room = this.backlogged && this.mayPrefetch ? this.prefetch.room : 0
    this.starved = slots.free + room === 0
    if (this.starved || this.paused) {
      this.state = 'idle'
      return
    }
    // Half of the free slots, so that runs that are started here meanwhile find one, too; but while other runs wait longer,
    // none is begun at its start.
    const reserved = this.hasBacklog ? slots.free : Math.ceil(slots.free / 2)
    const limit = reserved + room
    this.state = 'claiming'
    this.cancelTimer?.()
    slots.take(reserved)
    let begun = 0
    let restMs: number | null = null
    try {
      const { session } = engine
      const keys = this.keys.named
      const request = { session, selectors, limit, ...(keys === undefined ? {} : { keys }) }
      const { runs: claimed, fresh = [], more, nextDue, now } = await engine.store.claim(request)
      engine.clock.observe(now)
      this.rotation.served(claimed)
      const runs = this.uncontrolled(keys === undefined ? this.readable(claimed) : claimed)
      begun = Math.min(runs.length, reserved)
      if (runs.length > 0) this.pollMs = this.firstPollMs
      this.backlogged = more && runs.length > 0
      const dueInMs = nextDue === null ? null : nextDue - now
      // A run that is due and was not leased is locked by another transaction; stores report that in either way.
      const isLeft = more || (dueInMs !== null && dueInMs <= 0)
      restMs = dueInMs
      if (isLeft && runs.length === 0) {
        const pauseMs = this.contention.met()
        restMs = dueInMs === null || dueInMs <= 0 ? pauseMs : Math.min(pauseMs, dueInMs)
      } else this.contention.over()
      this.backOff = null
      this.keep({ runs: runs.slice(reserved), fresh })
      await this.performer.beginAll(runs.slice(0, reserved), fresh)
    } catch (error) {
      this.unanswered()
      if (isHoldfastError(error, 'SCHEMA_TOO_NEW')) this.refused(error)
      else engine.ports.logger.warn('The store did not hand out work; asking again soon.', { error })
      this.backOff ??= createBackoff(engine.ports)
      await this.backOff()
    }
    this.controlledMeanwhile.clear()
    this.endedMeanwhile.clear()
    slots.give(reserved - begun)
    this.rest(restMs)
  }

  /** Runs that no slot was free for when they were asked for: by now there may be, or nothing may begin any more. */
  private keep(batch: Batch): void {
    this.prefetch.put(batch)
    if (this.paused || (this.state as string) === 'stopped') this.prefetch.clear()
    else this.fill()
  }

  /** Begins runs that were claimed ahead, in all slots that are free. */
  private readonly fill = (): void => {
    this.hasToFill = false
    const count = Math.min(this.slots.free, this.prefetch.size)
    if (count <= 0) return
    this.slots.take(count)
    const { runs, fresh } = this.prefetch.take(count)
    void this.performer.beginAll(runs, fresh)
    // A claim may be worth it before the next slot is freed.
    if (this.backlogged && this.state === 'idle') this.wake()
  }

  /** The runs that this worker can read. The others are given back, and are not claimed here again. */
  private readable(claimed: readonly Run[]): readonly Run[] {
    const readable = claimed.filter((run) => this.keys.admits(run))
    if (readable.length === claimed.length) return claimed
    for (const run of claimed) if (!readable.includes(run)) this.performer.decline(run)
    return readable
  }

  /** The runs that may begin. The others are given back, as their control requests say. */
  private uncontrolled(claimed: readonly Run[]): readonly Run[] {
    if (this.controlledMeanwhile.size === 0 && this.endedMeanwhile.size === 0) return claimed
    const [mayBegin, controlled]: [Run[], Run[]] = [[], []]
    for (const run of claimed) {
      const isControlled = this.endedMeanwhile.has(run.id) || (this.controlledMeanwhile.has(run.id) && isUnaware(run))
      ;(isControlled ? controlled : mayBegin).push(run)
    }
    for (const run of controlled) this.performer.decline(run)
    return mayBegin
  }

  /** Asks again in this many milliseconds, or at the next poll if that is sooner. */
  private rest(ms: number | null): void {
    if ((this.state as string) === 'stopped') {
      this.stopping?.()
      return
    }
    this.state = 'idle'
    if (this.wokenMeanwhile || this.backlogged || this.backOff !== null) {
      this.wokenMeanwhile = false
      return this.wake()
    }
    const poll = this.contention.isMet ? this.longestPollMs : this.nextPoll()
    const restMs = Math.max(0, ms === null ? poll : Math.min(poll, ms))
    this.cancelTimer = this.engine.ports.clock.after(Math.round(restMs), this.wake)
    this.rested()
  }

  private nextPoll(): number {
    const jittered = this.pollMs * (0.75 + 0.5 * randomFraction(this.engine.ports.random))
    this.pollMs = Math.min(this.longestPollMs, 2 * this.pollMs)
    return jittered
  }

  /** A store with hints is asked seldom; any other often at first, and less and less while nothing comes. */
  private get firstPollMs(): number {
    return this.engine.store.capabilities.notifies ? this.longestPollMs : Math.min(shortestPollMs, this.longestPollMs)
  }
}

/** Its claim came before the control request: one that is being cancelled is claimed because of that request. */
function isUnaware({ status }: Run): boolean {
  return status !== 'cancelling'
}
