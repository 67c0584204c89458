// Gathers items while a flush is on its way and sends them together with the next; when nothing is on its way, an item goes
// at once. lanes.ts decides which items go together. Only while a worker begins runs from its backlog, turn after turn, does an
// item wait for those that come with these turns, ten milliseconds at most: sent at once, each turn would be a transaction, of
// as many runs as the worker has slots.
//
// A flush that is refused as a whole is sent again unchanged if the store is unavailable (a lost answer is harmless: every
// item carries an id that makes its repetition a no-op), and split in half otherwise, until the item that the store cannot
// take is alone. That item is rejected; no other is. Items whose rows another transaction has locked, and a flush that takes
// the store too long or that it leaves unanswered while it answers other calls, go by the slow path, so that they delay no
// other item: see slow-path.ts.

import { Deferred } from '../../core/runtime/deferred.ts'
import { bug, HoldfastError, isHoldfastError, isOfOneRow } from '../../core/errors/error.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import { isTooSlow } from '../../core/errors/too-slow.ts'
import type { BatchOptions } from '../../store.ts'
import { EndablePauses } from './endable-pauses.ts'
import { isNone, nothingLeft, partsOf, SlowPath, unitsOf, type Remainder } from './slow-path.ts'
import { isUnanswered } from '../store/bounded-store.ts'
import { Lanes, QueuedItem, type LaneOptions, type Taker, type Unit } from './lanes.ts'

export interface BatcherOptions<Item, Answer, Result> extends LaneOptions<Item> {
  /** Sends a batch; one answer per item, in order. */
  readonly flush: (items: readonly Item[], options: BatchOptions) => Promise<readonly Answer[]>
  /** Called with the answers of a flush, before they are passed on. */
  readonly onAnswers?: (answers: readonly Answer[]) => void
  /** Translates the error of a flush. @default itself */
  readonly errorOf?: (error: unknown) => unknown
  /** Whether the store answers anything at all now. @default it does not if it leaves a flush unanswered */
  readonly isAnswering?: (() => Promise<boolean>) | undefined
  /** How long the store may take for a flush. @default 15 s */
  readonly limitMs?: (() => number) | undefined
  /**
   * Nothing was done for this item, because another transaction has locked its row: it is sent again apart from the others.
   */
  readonly isBusy?: (answer: Answer) => boolean
  /** The name of an item in a warning: the run, or the topic. */
  readonly nameOf: (item: Item) => string
  /** The result for the submitter of an item; `last` is false if a later one was merged into it. May throw to reject. */
  readonly resultOf: (item: Item, answer: Answer, last: boolean) => Result
  /** More items are about to come: a flush waits for two turns, and again as long as these brought some. @default never */
  readonly isFilling?: (() => boolean) | undefined
  /** From this many waiting items on, `room()` makes producers wait. @default 10,000 */
  readonly highWater?: number
}

/** While this many flushes are on their way, items gather. */
const maxInFlight = 2

/** Runs whose code keeps the thread busy bring one item a turn: the others are not kept waiting for them. */
const longestPutOffMs = 10

/** How long a flush may take unless the options say otherwise. */
const usualLimitMs = 15_000

/** One of the usual flushes. */
const common: BatchOptions = {}

const atOnce = Promise.resolve()

/** A caller that waits until all items submitted before `upTo` are settled. */
interface Drain {
  readonly upTo: number
  readonly done: () => void
  left: number
}

export class Batcher<Item, Answer, Result> {
  private readonly ports: Ports
  private readonly flush: BatcherOptions<Item, Answer, Result>['flush']
  private readonly onAnswers: (answers: readonly Answer[]) => void
  private readonly errorOf: (error: unknown) => unknown
  private readonly isBusy: (answer: Answer) => boolean
  private readonly isAnswering: () => Promise<boolean>
  private readonly resultOf: BatcherOptions<Item, Answer, Result>['resultOf']
  private readonly isFilling: () => boolean
  private readonly highWater: number
  private readonly lanes: Lanes<Item, Result>
  private readonly slowPath: SlowPath<Item, Result>
  private submitted = 0
  private settled = 0
  private inFlight = 0
  private pumping = false
  /** How many items waited when a flush was put off, and since when it is. */
  private putOffAt = 0
  private putOffSince = 0
  private closed = false
  private roomWaiters: (() => void)[] = []
  private drains: Drain[] = []
  private readonly pauses = new EndablePauses()

  constructor(ports: Ports, options: BatcherOptions<Item, Answer, Result>) {
    this.ports = ports
    this.flush = options.flush
    this.onAnswers = options.onAnswers ?? (() => undefined)
    this.errorOf = options.errorOf ?? ((error) => error)
    this.isBusy = options.isBusy ?? (() => false)
    this.isAnswering = options.isAnswering ?? (() => Promise.resolve(false))
    this.resultOf = options.resultOf
    this.isFilling = options.isFilling ?? (() => false)
    this.highWater = options.highWater ?? 10_000
    this.lanes = new Lanes(options)
    const { maxItems, maxBytes } = this.lanes
    this.slowPath = new SlowPath({
      ports,
      maxItems,
      maxBytes,
      nameOf: options.nameOf,
      limitMs: options.limitMs ?? (() => usualLimitMs),
      send: (units, how) => this.send(units, how),
      land: (units) => this.land(units),
      halve: (unit) => this.lanes.halve(unit),
      isClosed: () => this.closed,
      failClosed: (units) => failAll(units, closedError()),
    })
  }

  /** Takes an item; settles when the store has answered for it. */
  submit(item: Item): Promise<Result> {
    const answered = new Deferred<Result>()
    this.enter(item, answered)
    return answered.promise
  }

  /** The same for a caller that needs no promise. */
  enter(item: Item, taker: Taker<Result>): void {
    if (this.closed) return taker.reject(closedError())
    const order = this.submitted++
    this.lanes.add(new QueuedItem(item, order, taker))
    this.pumpSoon()
  }

  /** More is waiting than the store keeps up with. */
  get isFull(): boolean {
    return this.lanes.waiting >= this.highWater
  }

  /** Settles when there is room for more: backpressure for producers that are faster than the store. */
  async room(): Promise<void> {
    while (this.isFull && !this.closed) {
      await new Promise<void>((resolve) => this.roomWaiters.push(resolve))
    }
  }

  /** Settles when everything submitted so far has been answered, regardless of items that are submitted meanwhile. */
  drain(): Promise<void> {
    const left = this.submitted - this.settled
    if (left === 0) return Promise.resolve()
    return new Promise((done) => this.drains.push({ upTo: this.submitted, left, done }))
  }

  /** Refuses new items, rejects those that wait, and sends nothing again that an unavailable store did not take. */
  close(): void {
    this.closed = true
    const waiting = this.lanes.clear()
    fail(waiting, closedError())
    this.settle(inOrder(waiting))
    this.pauses.end()
    this.slowPath.wake()
    this.makeRoom()
  }

  /** Items that are submitted in one wave of microtasks go together. */
  private pumpSoon(): void {
    if (this.pumping) return
    this.pumping = true
    void atOnce.then(this.pump)
  }

  private readonly pump = (): void => {
    if (this.mayPutOff()) return this.ports.turns.next(this.pumpNext)
    this.pumping = false
    this.putOffAt = 0
    while (this.inFlight < maxInFlight && this.lanes.hasReady) this.fly(this.lanes.take())
    this.makeRoom()
  }

  /** Work that begins in a turn submits its items after it. */
  private readonly pumpNext = (): void => this.ports.turns.next(this.pump)

  /** Whether a larger flush is worth a wait: more is about to come, and came since the last look. */
  private mayPutOff(): boolean {
    const { waiting, maxItems } = this.lanes
    if (waiting === this.putOffAt || waiting >= maxItems || !this.isFilling()) return false
    const now = this.ports.clock.monotonic()
    if (this.putOffAt === 0) this.putOffSince = now
    else if (now - this.putOffSince >= longestPutOffMs) return false
    this.putOffAt = waiting
    return true
  }

  /**
   * Nearly every flush is answered the first time: no async function is made for it. Three of them were a quarter of the
   * allocations of a step in memory.
   */
  private fly(units: readonly Unit<Item, Result>[]): void {
    this.inFlight += 1
    const items = itemsOf(units)
    this.tryToFlush(items, common).then(
      (answers) => this.flown(units, this.answered(units, answers, common)),
      (error: unknown) => this.flown(units, this.sendAgain(units, items, common, error)),
    )
  }

  private flown(
    units: readonly Unit<Item, Result>[],
    left: Remainder<Item, Result> | Promise<Remainder<Item, Result>>,
  ): void {
    if (left instanceof Promise) return void left.then((settled) => this.flown(units, settled))
    this.inFlight -= 1
    if (isNone(left)) return this.land(units)
    const slowPath = unitsOf(left)
    this.land(units.filter((unit) => !slowPath.has(unit)))
    this.slowPath.add(left)
  }

  private land(units: readonly Unit<Item, Result>[]): void {
    this.lanes.land(units)
    if (this.lanes.hasReady) this.pumpSoon()
    const [only] = units
    // The members of one unit are in order.
    if (only !== undefined && units.length === 1) return this.settle(only.members)
    const landed: QueuedItem<Item, Result>[] = []
    for (const { members } of units) for (const member of members) landed.push(member)
    this.settle(inOrder(landed))
  }

  /** Sends units until each has an outcome, except for the remainder. Never rejects. */
  private send(units: readonly Unit<Item, Result>[], options: BatchOptions): Promise<Remainder<Item, Result>> {
    const items = itemsOf(units)
    return this.tryToFlush(items, options).then(
      (answers) => this.answered(units, answers, options),
      (error: unknown) => this.sendAgain(units, items, options, error),
    )
  }

  private tryToFlush(items: readonly Item[], options: BatchOptions): Promise<readonly Answer[]> {
    try {
      return this.flush(items, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private answered(
    units: readonly Unit<Item, Result>[],
    answers: readonly Answer[],
    options: BatchOptions,
  ): Remainder<Item, Result> | Promise<Remainder<Item, Result>> {
    try {
      this.onAnswers(answers)
      if (answers.length !== units.length) throw bug(`${units.length} items got ${answers.length} answers`)
      return this.noteAll(units, answers)
    } catch (error) {
      return this.isolate(units, error, options)
    }
  }

  /** The same, when the first try has failed. */
  private async sendAgain(
    units: readonly Unit<Item, Result>[],
    items: readonly Item[],
    options: BatchOptions,
    firstError: unknown,
  ): Promise<Remainder<Item, Result>> {
    const pause = createBackoff(this.ports)
    for (let error = this.errorOf(firstError); ;) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return this.isolate(units, error, options)
      // Until an operator changes the row security policy, the one row is refused again and again: like a unit that takes too
      // long, it goes alone.
      const isSlow = isTooSlow(error) || isOfOneRow(error) || (isUnanswered(error) && (await this.isAnswering()))
      if (!this.closed && isSlow) return { ...nothingLeft, slow: [units] }
      if (!this.closed) {
        this.ports.logger.warn('The store is unavailable; pending requests are kept and sent again.', { error })
        await this.pauses.wait(pause())
      }
      if (this.closed) {
        failAll(units, closedError(error))
        return nothingLeft
      }
      try {
        return await this.answered(units, await this.flush(items, options), options)
      } catch (again) {
        error = this.errorOf(again)
      }
    }
  }

  /** Finds the item that the store cannot take, and sends the others without it. */
  private async isolate(
    units: readonly Unit<Item, Result>[],
    error: unknown,
    options: BatchOptions,
  ): Promise<Remainder<Item, Result>> {
    const [only] = units as readonly [Unit<Item, Result>]
    if (units.length > 1) {
      const half = units.length >> 1
      const first = await this.send(units.slice(0, half), options)
      const second = await this.send(units.slice(half), options)
      return {
        locked: [...first.locked, ...second.locked],
        slow: [...first.slow, ...second.slow],
        inParts: [...first.inParts, ...second.inParts],
      }
    }
    if (only.members.length === 1) {
      fail(only.members, error)
      return nothingLeft
    }
    // One after the other, because they belong to one run: the rest goes apart when one cannot be settled.
    const [first, second] = this.lanes.halve(only)
    const left = partsOf(await this.send([first], options))
    if (left.length > 0) return { ...nothingLeft, inParts: [{ unit: only, parts: [...left, second] }] }
    const rest = partsOf(await this.send([second], options))
    return rest.length === 0 ? nothingLeft : { ...nothingLeft, inParts: [{ unit: only, parts: rest }] }
  }

  /** Returns the units that another transaction has locked. */
  private noteAll(units: readonly Unit<Item, Result>[], answers: readonly Answer[]): Remainder<Item, Result> {
    let locked: Unit<Item, Result>[] | null = null
    for (let at = 0; at < units.length; at += 1) {
      const unit = units[at] as Unit<Item, Result>
      const answer = answers[at] as Answer
      if (this.isBusy(answer)) (locked ??= []).push(unit)
      else this.note(unit, answer)
    }
    return locked === null ? nothingLeft : { ...nothingLeft, locked }
  }

  private note({ members }: Unit<Item, Result>, answer: Answer): void {
    const last = members.length - 1
    for (let at = 0; at <= last; at += 1) {
      const member = members[at] as QueuedItem<Item, Result>
      try {
        member.outcome = this.resultOf(member.item, answer, at === last)
      } catch (error) {
        fail([member], error)
      }
    }
  }

  /** Answers the submitters, in this order. */
  private settle(items: readonly QueuedItem<Item, Result>[]): void {
    this.settled += items.length
    for (const { failed, error, outcome, taker } of items) {
      if (failed) taker.reject(error)
      else taker.resolve(outcome as Result)
    }
    if (this.drains.length === 0) return
    for (const drain of this.drains) {
      for (const { order } of items) if (order < drain.upTo) drain.left -= 1
      if (drain.left === 0) drain.done()
    }
    this.drains = this.drains.filter((drain) => drain.left > 0)
  }

  private makeRoom(): void {
    if (this.roomWaiters.length === 0 || (this.lanes.waiting >= this.highWater && !this.closed)) return
    for (const wake of this.roomWaiters.splice(0)) wake()
  }
}

function itemsOf<Item, Result>(units: readonly Unit<Item, Result>[]): readonly Item[] {
  return units.map(({ item }) => item)
}

/**
 * Submitters are answered in the order in which they came: that in which lanes became ready may be another. Mostly it is the same,
 * and looking costs less than sorting.
 */
function inOrder<Item, Result>(items: QueuedItem<Item, Result>[]): readonly QueuedItem<Item, Result>[] {
  const isSorted = items.every(({ order }, at) => at === 0 || (items[at - 1] as QueuedItem<Item, Result>).order < order)
  return isSorted ? items : items.sort((a, b) => a.order - b.order)
}

function fail<Item, Result>(items: readonly QueuedItem<Item, Result>[], error: unknown): void {
  for (const item of items) {
    item.error = error
    item.failed = true
  }
}

function failAll<Item, Result>(units: readonly Unit<Item, Result>[], error: unknown): void {
  for (const { members } of units) fail(members, error)
}

function closedError(cause?: unknown): HoldfastError {
  return new HoldfastError('CLOSED', 'This Holdfast is closed: it takes no more work. Create a new one to go on.', {
    cause,
  })
}
