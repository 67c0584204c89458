// The items that wait to be sent, and which of them go together. Items with the same key are in one lane. A lane is in at
// most one flush at a time, so the order within it is kept; items that queue up in it meanwhile go as one unit as far as they
// may be merged. Lanes take turns: one that comes back from a flush goes behind those that were ready before it.

export interface LaneOptions<Item> {
  /** Items with the same key stand in one lane. @default each in a lane of its own */
  readonly keyOf?: ((item: Item) => string) | undefined
  /** About how many bytes an item weighs. */
  readonly sizeOf: (item: Item) => number
  readonly merge?: Merge<Item> | undefined
  /** At most this many units in a batch, and this many items in a unit. @default 500 */
  readonly maxItems?: number | undefined
  /** At most this many bytes in a batch; an item that is larger goes alone. @default 4 MiB */
  readonly maxBytes?: number | undefined
}

export interface Merge<Item> {
  readonly may: (first: Item, second: Item) => boolean
  readonly both: (first: Item, second: Item) => Item
}

/**
 * Stands for an empty list until its first member, which gets a list of its own size: a list that grows takes room for 17,
 * and a process that performs one run at a time never has a second member.
 */
const none: never[] = []

/** Waits for the outcome of an item. One of these is called, once. */
export interface Taker<Result> {
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * An item, its taker and, once that is known, its outcome. A class, so that V8 never makes it in the old generation: see
 * `ChurningMap`.
 */
export class QueuedItem<Item, Result> {
  readonly item: Item
  readonly order: number
  readonly taker: Taker<Result>
  outcome: Result | undefined = undefined
  error: unknown = undefined
  failed = false

  constructor(item: Item, order: number, taker: Taker<Result>) {
    this.item = item
    this.order = order
    this.taker = taker
  }
}

class Lane<Item, Result> {
  queue: QueuedItem<Item, Result>[] = none
  flying = false
}

/** The items that go as one: the foremost of a lane, merged. */
export interface Unit<Item, Result> {
  readonly lane: Lane<Item, Result>
  readonly item: Item
  readonly bytes: number
  readonly members: readonly QueuedItem<Item, Result>[]
}

/** Idle lanes are kept for the next item of their key, until they are this many and most of all lanes. */
const maxIdle = 1_000

export class Lanes<Item, Result> {
  /** How many items are in the queues. */
  waiting = 0
  private readonly keyOf: ((item: Item) => string) | undefined
  private readonly sizeOf: (item: Item) => number
  private readonly merge: Merge<Item> | undefined
  readonly maxItems: number
  readonly maxBytes: number
  private byKey = new Map<string, Lane<Item, Result>>()
  private idle = 0
  /** Lanes that have a queue and are not in a flush. */
  private ready: Lane<Item, Result>[] = none
  /** The index of the first of those: the ones before were taken. */
  private front = 0

  constructor({ keyOf, sizeOf, merge, maxItems = 500, maxBytes = 4 * 1024 * 1024 }: LaneOptions<Item>) {
    this.keyOf = keyOf
    this.sizeOf = sizeOf
    this.merge = merge
    this.maxItems = maxItems
    this.maxBytes = maxBytes
  }

  get hasReady(): boolean {
    return this.front < this.ready.length
  }

  add(submission: QueuedItem<Item, Result>): void {
    const lane = this.laneOf(submission.item)
    this.waiting += 1
    if (lane.queue.length > 0) {
      lane.queue.push(submission)
      return
    }
    lane.queue = [submission]
    if (lane.flying) return
    this.becomesReady(lane)
    this.idle -= 1
  }

  private becomesReady(lane: Lane<Item, Result>): void {
    if (this.ready.length === 0) this.ready = [lane]
    else this.ready.push(lane)
  }

  /** As many of the ready lanes as fit into one batch; at least one, regardless of its size. */
  take(): readonly Unit<Item, Result>[] {
    let units: Unit<Item, Result>[] = none
    let bytes = 0
    for (let at = this.front; at < this.ready.length && units.length < this.maxItems; at++) {
      const lane = this.ready[at] as Lane<Item, Result>
      const unit = this.unitOf(lane, lane.queue)
      bytes += unit.bytes
      if (units.length > 0 && bytes > this.maxBytes) break
      lane.queue = unit.members === lane.queue ? none : lane.queue.slice(unit.members.length)
      lane.flying = true
      this.waiting -= unit.members.length
      if (units.length === 0) units = [unit]
      else units.push(unit)
    }
    this.front += units.length
    if (this.front >= this.ready.length / 2) {
      this.ready = this.front === this.ready.length ? none : this.ready.slice(this.front)
      this.front = 0
    }
    return units
  }

  /** Splits a merged unit into two, to be sent one after the other. */
  halve({ lane, members }: Unit<Item, Result>): readonly [Unit<Item, Result>, Unit<Item, Result>] {
    const half = members.length >> 1
    return [this.unitOf(lane, members.slice(0, half)), this.unitOf(lane, members.slice(half))]
  }

  /** The lanes of these units are free for the next flush. */
  land(units: readonly Unit<Item, Result>[]): void {
    for (const { lane } of units) {
      lane.flying = false
      if (lane.queue.length > 0) this.becomesReady(lane)
      else this.idle += 1
    }
    if (this.idle >= maxIdle && this.idle > this.byKey.size / 2) this.sweep()
  }

  /** Empties all queues. */
  clear(): QueuedItem<Item, Result>[] {
    const waiting: QueuedItem<Item, Result>[] = []
    for (const lanes of [this.ready.slice(this.front), this.byKey.values()]) {
      for (const lane of lanes) {
        for (const submission of lane.queue) waiting.push(submission)
        lane.queue = none
      }
    }
    this.idle += this.ready.length - this.front
    this.ready = none
    this.front = 0
    this.waiting = 0
    return waiting
  }

  private laneOf(item: Item): Lane<Item, Result> {
    if (this.keyOf === undefined) {
      this.idle += 1
      return new Lane()
    }
    const key = this.keyOf(item)
    let lane = this.byKey.get(key)
    if (lane === undefined) {
      this.byKey.set(key, (lane = new Lane()))
      this.idle += 1
    }
    return lane
  }

  /** Merges the foremost of a queue as far as they may go as one. */
  private unitOf(lane: Lane<Item, Result>, queue: readonly QueuedItem<Item, Result>[]): Unit<Item, Result> {
    const { merge, sizeOf } = this
    let { item } = queue[0] as QueuedItem<Item, Result>
    let bytes = sizeOf(item)
    let count = 1
    for (; merge !== undefined && count < queue.length && count < this.maxItems; count++) {
      const next = (queue[count] as QueuedItem<Item, Result>).item
      const size = sizeOf(next)
      if (bytes + size > this.maxBytes || !merge.may(item, next)) break
      item = merge.both(item, next)
      bytes += size
    }
    return { lane, item, bytes, members: count === queue.length ? queue : queue.slice(0, count) }
  }

  /**
   * Forgets idle lanes all at once, in a new map. Deleting each as it becomes idle cost twice as much per item: the
   * tables that a map outgrows point to their successors, so that dead ones in the old generation keep others alive.
   */
  private sweep(): void {
    const busy = new Map<string, Lane<Item, Result>>()
    for (const [key, lane] of this.byKey) if (lane.flying || lane.queue.length > 0) busy.set(key, lane)
    this.byKey = busy
    this.idle = 0
  }
}
