// How often an index walk is made that is cheap as a rule and may become very expensive: one that begins at the front of an
// index, over entries of dead rows. While a transaction holds an old snapshot nothing can clean those up, and there may be
// millions.
//
// Such a walk is made on every request as long as it is cheap. Once two in a row took long it rests twenty times as long as
// the second took (one alone says more of the moment than of the index), so that no more than a twentieth of the time goes
// into it, however many entries there are. Meanwhile a walk that begins where the last one ended takes its place: it finds
// new rows, and the next walk from the front finds the rest.
//
// On a machine that is busy everything takes long. So what counts is by how much a walk took longer than the last one beside it
// that did not begin at the front: only so much of it is due to what lies there. A walk that the database gave up because it took
// too long would take as long again: it rests at once.

import { isTooSlow } from '../../../core/errors/too-slow.ts'
import { isCancelled, sqlStateOf } from '../connection/sql-state.ts'

/** A walk that takes no longer than this needs no rest: looks come every few seconds, and a busy machine has such moments. */
const usuallyCheapMs = 1_000

const restFactor = 20

/** The longest that a walk rests. */
const longestRestMs = 60_000

export interface PaceOptions {
  /** A walk that takes no longer needs no rest. @default 1 s */
  readonly cheapMs?: number
  /** How long lies between two walks that nothing asks for, however cheap they are. @default none */
  readonly leastMs?: number
}

export class WalkPace {
  private readonly monotonic: () => number
  private readonly cheapMs: number
  private readonly leastMs: number
  private until = Number.NEGATIVE_INFINITY
  private walkedAt = Number.NEGATIVE_INFINITY
  private wasDear = false
  /** How long the last one took that did not begin at the front, if one was made since the last walk; else 0. */
  private besideMs = 0
  /** The last walk was given up because it took too long. */
  private wasCut = false

  constructor(monotonic: () => number, { cheapMs = usuallyCheapMs, leastMs = 0 }: PaceOptions = {}) {
    this.monotonic = monotonic
    this.cheapMs = cheapMs
    this.leastMs = leastMs
  }

  /** It has rested enough, and is made at the next request. */
  get isRested(): boolean {
    return this.monotonic() >= this.until
  }

  /** It rests because the last one never came to its end: the rows at the front are not known. */
  get isCut(): boolean {
    return this.wasCut && !this.isRested
  }

  /** It has rested enough, and the last one is long enough ago. */
  get isDue(): boolean {
    return this.isRested && this.monotonic() - this.walkedAt >= this.leastMs
  }

  /**
   * Makes the walk. One that fails has taken its time, too. With `isAll` it begins at the front of every index range that is
   * read; a walk that does so only for a part is as expensive, but the next one of all comes due as if it had not been made.
   */
  async walk<Answer>(work: () => Promise<Answer>, isAll = true): Promise<Answer> {
    const from = this.monotonic()
    if (isAll) this.walkedAt = from
    this.wasCut = false
    try {
      return await work()
    } catch (error) {
      this.wasCut = isTooSlow(error) || isCancelled(sqlStateOf(error))
      throw error
    } finally {
      const now = this.monotonic()
      const moreMs = this.wasCut ? now - from : now - from - this.besideMs
      const isDear = this.wasCut || moreMs > this.cheapMs
      if (isDear && (this.wasDear || this.wasCut)) this.until = now + Math.min(restFactor * moreMs, longestRestMs)
      this.wasDear = isDear
      this.besideMs = 0
    }
  }

  /** Makes a walk that does not begin at the front: its duration is the least that any walk takes now. */
  async beside<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const from = this.monotonic()
    const answer = await work()
    this.besideMs = this.monotonic() - from
    return answer
  }
}
