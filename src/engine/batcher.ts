// Gathers items while a flush is on its way and sends them together with the next; when nothing is on its way, an item
// goes at once. There is no timer in it, so batching adds no latency. Which items go together is told in lanes.ts.
//
// A flush that is refused as a whole is tried again as it was if the store is unavailable (a lost answer is harmless:
// every item carries an id that makes its repetition a no-op), and split in half otherwise, until the item that the
// store cannot take stands alone. That one is rejected; nothing else is harmed.

import { bug, HoldfastError, isHoldfastError } from '../core/error.ts'
import { growingPauses } from '../core/pause.ts'
import type { Ports } from '../core/ports.ts'
import { Lanes, type LaneOptions, type Submission, type Unit } from './lanes.ts'

export interface BatcherOptions<Item, Answer, Result> extends LaneOptions<Item> {
  /** Sends a batch; one answer per item, in order. */
  readonly flush: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** Nothing was done for this item, because somebody else has it for now: it is sent again apart from the others. */
  readonly isBusy?: (answer: Answer) => boolean
  /** What a submitter gets for its item; `last` is false if a later one was merged into it. May throw to reject. */
  readonly resultOf: (item: Item, answer: Answer, last: boolean) => Result
  /** From this many waiting items on, `room()` makes producers wait. @default 10,000 */
  readonly highWater?: number
}

/** While this many flushes are on their way, items gather. */
const maxInFlight = 2

/** Somebody who waits until what was submitted before `upTo` is settled. */
interface Drain {
  readonly upTo: number
  readonly done: () => void
  left: number
}

export class Batcher<Item, Answer, Result> {
  private readonly ports: Ports
  private readonly flush: BatcherOptions<Item, Answer, Result>['flush']
  private readonly isBusy: (answer: Answer) => boolean
  private readonly resultOf: BatcherOptions<Item, Answer, Result>['resultOf']
  private readonly highWater: number
  private readonly lanes: Lanes<Item, Result>
  private submitted = 0
  private settled = 0
  private inFlight = 0
  private pumping = false
  private closed = false
  private roomWaiters: (() => void)[] = []
  private drains: Drain[] = []
  private readonly endPauses = new Set<() => void>()

  constructor(ports: Ports, options: BatcherOptions<Item, Answer, Result>) {
    this.ports = ports
    this.flush = options.flush
    this.isBusy = options.isBusy ?? (() => false)
    this.resultOf = options.resultOf
    this.highWater = options.highWater ?? 10_000
    this.lanes = new Lanes(options)
  }

  /** Takes an item; settles when the store has answered for it. */
  submit(item: Item): Promise<Result> {
    if (this.closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const order = this.submitted++
      this.lanes.add({ item, order, resolve, reject, outcome: undefined, error: undefined, failed: false })
      this.pumpSoon()
    })
  }

  /** More is waiting than the store keeps up with. */
  get isFull(): boolean {
    return this.lanes.waiting >= this.highWater
  }

  /** Settles when there is room for more: what keeps a producer from outrunning the store. */
  async room(): Promise<void> {
    while (this.isFull && !this.closed) {
      await new Promise<void>((resolve) => this.roomWaiters.push(resolve))
    }
  }

  /** Settles when everything submitted so far has been answered, whatever is submitted meanwhile. */
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
    this.settle(waiting)
    for (const end of this.endPauses) end()
    this.makeRoom()
  }

  /** Whatever is submitted in one wave of microtasks goes together. */
  private pumpSoon(): void {
    if (this.pumping) return
    this.pumping = true
    void Promise.resolve().then(this.pump)
  }

  private readonly pump = (): void => {
    this.pumping = false
    while (this.inFlight < maxInFlight && this.lanes.hasReady) void this.fly(this.lanes.take())
    this.makeRoom()
  }

  private async fly(units: readonly Unit<Item, Result>[]): Promise<void> {
    this.inFlight += 1
    const busy = new Set(await this.send(units))
    this.inFlight -= 1
    this.land(busy.size === 0 ? units : units.filter((unit) => !busy.has(unit)))
    for (const unit of busy) void this.sendPatiently(unit).then(() => this.land([unit]))
  }

  private land(units: readonly Unit<Item, Result>[]): void {
    this.lanes.land(units)
    if (this.lanes.hasReady) this.pumpSoon()
    const landed: Submission<Item, Result>[] = []
    for (const { members } of units) for (const member of members) landed.push(member)
    this.settle(landed)
  }

  /** Sends units until each has an outcome, but for those that somebody else has: they are given back. Never throws. */
  private async send(units: readonly Unit<Item, Result>[]): Promise<readonly Unit<Item, Result>[]> {
    const items = units.map((unit) => unit.item)
    const pause = growingPauses(this.ports)
    for (;;) {
      try {
        const answers = await this.flush(items)
        if (answers.length !== items.length) throw bug(`${items.length} items got ${answers.length} answers`)
        const isBusy = (_unit: unknown, index: number): boolean => this.isBusy(answers[index] as Answer)
        units.forEach((unit, index) => {
          if (!isBusy(unit, index)) this.note(unit, answers[index] as Answer)
        })
        return units.filter(isBusy)
      } catch (error) {
        if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return this.isolate(units, error)
        if (!this.closed) {
          this.ports.logger.warn('The store is unavailable; what waits for it is kept and sent again.', { error })
          await this.endable(pause())
        }
        if (this.closed) {
          for (const { members } of units) fail(members, closedError(error))
          return []
        }
      }
    }
  }

  /** Finds the item that the store cannot take, and sends the others without it. */
  private async isolate(units: readonly Unit<Item, Result>[], error: unknown): Promise<readonly Unit<Item, Result>[]> {
    const [only] = units as readonly [Unit<Item, Result>]
    if (units.length > 1) {
      const half = units.length >> 1
      return [...(await this.send(units.slice(0, half))), ...(await this.send(units.slice(half)))]
    }
    if (only.members.length > 1) {
      // One after the other, however long somebody else has it: they belong to one run.
      for (const half of this.lanes.halve(only)) await this.sendPatiently(half)
    } else fail(only.members, error)
    return []
  }

  private async sendPatiently(unit: Unit<Item, Result>): Promise<void> {
    const pause = growingPauses(this.ports)
    while ((await this.send([unit])).length > 0) await this.endable(pause())
  }

  private note({ members }: Unit<Item, Result>, answer: Answer): void {
    const last = members.length - 1
    members.forEach((member, index) => {
      try {
        member.outcome = this.resultOf(member.item, answer, index === last)
      } catch (error) {
        fail([member], error)
      }
    })
  }

  /** Tells submitters in the order in which they came: that in which lanes became ready may be another. */
  private settle(submissions: Submission<Item, Result>[]): void {
    submissions.sort((a, b) => a.order - b.order)
    this.settled += submissions.length
    for (const { failed, error, outcome, resolve, reject } of submissions) {
      if (failed) reject(error)
      else resolve(outcome as Result)
    }
    if (this.drains.length === 0) return
    for (const drain of this.drains) {
      for (const { order } of submissions) if (order < drain.upTo) drain.left -= 1
      if (drain.left === 0) drain.done()
    }
    this.drains = this.drains.filter((drain) => drain.left > 0)
  }

  private makeRoom(): void {
    if (this.roomWaiters.length === 0 || (this.lanes.waiting >= this.highWater && !this.closed)) return
    for (const wake of this.roomWaiters.splice(0)) wake()
  }

  /** A pause that `close()` ends. */
  private endable(pause: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.endPauses.delete(end)
        resolve()
      }
      this.endPauses.add(end)
      void pause.then(end)
    })
  }
}

function fail<Item, Result>(submissions: readonly Submission<Item, Result>[], error: unknown): void {
  for (const submission of submissions) {
    submission.error = error
    submission.failed = true
  }
}

function closedError(cause?: unknown): HoldfastError {
  return new HoldfastError('CLOSED', 'This Holdfast is closed: it takes no more work. Create a new one to go on.', {
    cause,
  })
}
