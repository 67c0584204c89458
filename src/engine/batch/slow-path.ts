// The path of units that would delay the others: it never takes one of the two places of the usual flushes.
//
//   flying → locked    the store answered that another transaction has locked its row: nothing was done. All locked units go
//                      together, again and again with growing pauses, in one flush at a time; the store skips those that
//                      still are
//   flying → slow      the store gave the whole flush up, because it took too long, or left it unanswered while it answers
//                      other calls. It is sent in pieces, two at a time, each with a fraction of the time: pieces that the
//                      store takes land, and a piece that takes too long is cut into pieces again. If no piece is taken, the
//                      store may be slow for all: then the smaller ones have twice the time
//   slow   → alone     one unit by itself took too long: it is the poisonous one, if it takes too long with all the time that a
//                      flush has. It is sent alone, with long pauses and with a warning that names it. A merged unit is
//                      split further, and its parts go one after the other
//   flying → in parts  the store cannot take one item of a merged unit, and the rest of it is locked, or took too long: its parts
//                      go alone, one after the other
//   any    → landed    the store answered for it
//
// So the neighbours of one poisonous unit wait for the one flush that they shared with it, and for three fractions of that:
// 500 are cut into pieces of 63, of 8, of 1. While the store cannot be reached nothing is split: every flush waits for it.

import { createBackoff, type BackoffBounds } from '../../core/runtime/backoff.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import type { BatchOptions } from '../../store.ts'
import { EndablePauses } from './endable-pauses.ts'
import type { Unit } from './lanes.ts'

/** The units that a flush could not settle. */
export interface Remainder<Item, Result> {
  /** Other transactions have locked these for now. */
  readonly locked: readonly Unit<Item, Result>[]
  /** Flushes that took the store too long. */
  readonly slow: readonly (readonly Unit<Item, Result>[])[]
  /** Merged units that are partly settled, and the rest of each, in its order. */
  readonly inParts: readonly InParts<Item, Result>[]
}

export interface InParts<Item, Result> {
  readonly unit: Unit<Item, Result>
  readonly parts: readonly Unit<Item, Result>[]
}

const none: readonly never[] = []

/** Everything is settled. */
export const nothingLeft = { locked: none, slow: none, inParts: none }

export function isNone<Item, Result>({ locked, slow, inParts }: Remainder<Item, Result>): boolean {
  return locked.length + slow.length + inParts.length === 0
}

/** The remaining parts of one unit. */
export function partsOf<Item, Result>({
  locked,
  slow,
  inParts,
}: Remainder<Item, Result>): readonly Unit<Item, Result>[] {
  return [...locked, ...slow.flat(), ...inParts.flatMap(({ parts }) => parts)]
}

export interface SlowPathOptions<Item, Result> {
  readonly ports: Ports
  /** At most this many units in a flush, and this many bytes. */
  readonly maxItems: number
  readonly maxBytes: number
  /** Sends units until each has an outcome, except for the remainder. */
  readonly send: (units: readonly Unit<Item, Result>[], options: BatchOptions) => Promise<Remainder<Item, Result>>
  /** How long the store may take for a flush. */
  readonly limitMs: () => number
  /** These have their outcome. */
  readonly land: (units: readonly Unit<Item, Result>[]) => void
  readonly halve: (unit: Unit<Item, Result>) => readonly [Unit<Item, Result>, Unit<Item, Result>]
  /** The name in a warning. */
  readonly nameOf: (item: Item) => string
  /** Nothing is sent again: the callers are rejected, and the units land. */
  readonly isClosed: () => boolean
  readonly failClosed: (units: readonly Unit<Item, Result>[]) => void
}

/** A flush that took too long is cut into this many pieces; each of them has this fraction of the time. */
const cuts = 8

/** At most this many pieces are on their way at once: the poisonous one, and those that need not wait for it. */
const mostPieces = 2

/** Between two tries of locked units. A store waits for a lock itself, for a while, and that is no pause. */
const lockedPauses: BackoffBounds = { firstMs: 10, longestMs: 100 }

/** Between two tries of a unit that takes too long. The store needs its time for the others. */
const alonePauses: BackoffBounds = { firstMs: 1_000, longestMs: 60_000 }

export class SlowPath<Item, Result> {
  private readonly options: SlowPathOptions<Item, Result>
  private locked: Unit<Item, Result>[] = []
  private isRetrying = false
  /** The end of the unit that goes alone and is on its way: one at a time. */
  private turn: Promise<unknown> = Promise.resolve()
  /** Pieces that are on their way, and those that wait for a place. */
  private pieces = 0
  private readonly placeless: (() => void)[] = []
  private readonly pauses = new EndablePauses()

  constructor(options: SlowPathOptions<Item, Result>) {
    this.options = options
  }

  add({ locked, slow, inParts }: Remainder<Item, Result>): void {
    if (locked.length > 0) {
      for (const unit of locked) this.locked.push(unit)
      void this.retryLocked()
    }
    for (const units of slow) void this.sendSlow(units)
    for (const { unit, parts } of inParts) void this.sendParts(parts).then(() => this.options.land([unit]))
  }

  /** Ends every pause. */
  wake(): void {
    this.pauses.end()
  }

  private async retryLocked(): Promise<void> {
    if (this.isRetrying) return
    this.isRetrying = true
    let pause = createBackoff(this.options.ports, lockedPauses)
    while (this.locked.length > 0) {
      const units = this.takeLocked()
      const left = await this.options.send(units, { mayWait: true })
      this.landAllBut(units, left)
      this.add({ ...left, locked: [] })
      if (this.options.isClosed()) this.failClosed(left.locked)
      else for (const unit of turned(left.locked)) this.locked.push(unit)
      if (left.locked.length < units.length) pause = createBackoff(this.options.ports, lockedPauses)
      else await this.pauses.wait(pause())
    }
    this.isRetrying = false
  }

  /** As many of the locked ones as fit into a flush; at least one. */
  private takeLocked(): readonly Unit<Item, Result>[] {
    const { maxItems, maxBytes } = this.options
    let [count, bytes] = [0, 0]
    for (const unit of this.locked) {
      bytes += unit.bytes
      if (count > 0 && (count === maxItems || bytes > maxBytes)) break
      count += 1
    }
    return this.locked.splice(0, count)
  }

  private async sendSlow(units: readonly Unit<Item, Result>[]): Promise<void> {
    const [only] = units as readonly [Unit<Item, Result>]
    if (units.length > 1) return this.split(units, this.options.limitMs() / cuts)
    await this.sendAlone(only)
    this.options.land([only])
  }

  /** Finds the unit that takes too long, and has the others taken meanwhile. */
  private async split(units: readonly Unit<Item, Result>[], withinMs: number): Promise<void> {
    const pieces = cut(units)
    const left = await Promise.all(pieces.map((some) => this.sendPiece(some, withinMs)))
    const slow = left.flat()
    const nextMs = slow.length === pieces.length ? Math.min(2 * withinMs, this.options.limitMs()) : withinMs
    for (const some of slow) {
      if (some.length > 1) void this.split(some, nextMs)
      else void this.sendSuspect(some[0] as Unit<Item, Result>)
    }
  }

  /** The piece if it took too long. */
  private async sendPiece(
    units: readonly Unit<Item, Result>[],
    withinMs: number,
  ): Promise<readonly (readonly Unit<Item, Result>[])[]> {
    const left = await this.inPlace(() => this.options.send(units, { mayWait: true, timeoutMs: withinMs }))
    this.landAllBut(units, left)
    this.add({ ...left, slow: [] })
    return left.slow
  }

  /** One that took longer than a piece may. It may be that it only needs all of the time. */
  private async sendSuspect(unit: Unit<Item, Result>): Promise<void> {
    if (await this.isSlow(unit)) await this.sendAlone(unit)
    this.options.land([unit])
  }

  /** Sends one unit that took too long, or its parts one after the other, until the store has taken it. */
  private async sendAlone(unit: Unit<Item, Result>): Promise<void> {
    const { ports, halve, nameOf, isClosed, failClosed } = this.options
    if (unit.members.length > 1) return this.sendParts(halve(unit))
    const pause = createBackoff(ports, alonePauses)
    do {
      const name = nameOf(unit.item)
      ports.logger.warn(
        `The store takes too long for ${name}, or refuses it: it is sent alone, and again after a pause.`,
        { name },
      )
      await this.pauses.wait(pause())
      if (isClosed()) return failClosed([unit])
    } while (await this.isSlow(unit))
    // It was the store that was slow, and not this one alone: the others need not wait any longer either.
    this.wake()
  }

  private async sendParts(parts: readonly Unit<Item, Result>[]): Promise<void> {
    for (const part of parts) if (await this.isSlow(part)) await this.sendAlone(part)
  }

  /**
   * Sends one unit, also while another transaction has locked its row. True if the store has not taken it, because it took
   * too long.
   */
  private async isSlow(unit: Unit<Item, Result>): Promise<boolean> {
    const pause = createBackoff(this.options.ports, lockedPauses)
    for (;;) {
      const { locked, slow, inParts } = await this.inTurn([unit])
      for (const { parts } of inParts) await this.sendParts(parts)
      if (locked.length === 0) return slow.length > 0
      await this.pauses.wait(pause())
      if (!this.options.isClosed()) continue
      this.options.failClosed([unit])
      return false
    }
  }

  private inTurn(units: readonly Unit<Item, Result>[]): Promise<Remainder<Item, Result>> {
    const sent = this.turn.then(() => this.options.send(units, { mayWait: true }))
    this.turn = sent
    return sent
  }

  /** Sends a piece once there is a place for it. */
  private async inPlace<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    if (this.pieces === mostPieces) await new Promise<void>((resolve) => this.placeless.push(resolve))
    else this.pieces += 1
    try {
      return await send()
    } finally {
      const next = this.placeless.shift()
      if (next === undefined) this.pieces -= 1
      else next()
    }
  }

  private landAllBut(units: readonly Unit<Item, Result>[], left: Remainder<Item, Result>): void {
    const kept = unitsOf(left)
    this.options.land(kept.size === 0 ? units : units.filter((unit) => !kept.has(unit)))
  }

  private failClosed(units: readonly Unit<Item, Result>[]): void {
    if (units.length === 0) return
    this.options.failClosed(units)
    this.options.land(units)
  }
}

/** Those that have not landed. */
export function unitsOf<Item, Result>({
  locked,
  slow,
  inParts,
}: Remainder<Item, Result>): ReadonlySet<Unit<Item, Result>> {
  return new Set([...locked, ...slow.flat(), ...inParts.map(({ unit }) => unit)])
}

/** Pieces of about the same size, in order. */
function cut<One>(list: readonly One[]): readonly (readonly One[])[] {
  const size = Math.ceil(list.length / cuts)
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size))
}

/** Those that went first go last: a store that finds much of a batch locked may not come to its end. */
function turned<One>(list: readonly One[]): readonly One[] {
  const first = Math.ceil(list.length / 4)
  return [...list.slice(first), ...list.slice(0, first)]
}
