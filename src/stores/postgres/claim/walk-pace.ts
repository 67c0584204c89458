// How often a walk is made that is cheap as a rule and may become very dear: one that begins at the front of an index, past
// entries of rows that are gone. While somebody reads an old snapshot nothing can clean those up, and there may be millions.
//
// Such a walk is made whenever it is asked for as long as it is cheap. Once two in a row took long it rests twenty times as long
// as the second took (one alone says more of the moment than of the index), so that no more than a twentieth of the time goes
// into it, whatever lies there. Meanwhile a walk that begins where the last one ended takes its place: it finds what is new, and
// the next walk from the front finds the rest.
//
// On a machine that is busy everything takes long. So what counts is by how much a walk took longer than the last one beside it
// that did not begin at the front: only so much of it is due to what lies there. A walk that the database gave up because it took
// too long would take as long again: it rests at once.

import { isTooSlow } from '../../../core/errors/too-slow.ts'
import { isCancelled, sqlStateOf } from '../connection/sql-state.ts'

/** What takes no longer than this needs no rest: looks come every few seconds, and a machine that is busy has such moments. */
const usuallyCheapMs = 1_000

const restFactor = 20

/** The longest that a walk rests. */
const longestRestMs = 60_000

export interface PaceOptions {
  /** What takes no longer needs no rest. @default 1 s */
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

  /** It has rested enough, and is made if something asks for it. */
  get isRested(): boolean {
    return this.monotonic() >= this.until
  }

  /** It rests because the last one never came to its end: what lies at the front is not known. */
  get isCut(): boolean {
    return this.wasCut && !this.isRested
  }

  /** It has rested enough, and the last one is long enough ago. */
  get isDue(): boolean {
    return this.isRested && this.monotonic() - this.walkedAt >= this.leastMs
  }

  /**
   * Makes the walk. One that fails has taken its time, too. With `isAll` it begins at the front of everything that is looked
   * at; one that does so only of a part is as dear, but the next one of all comes due as if it had not been made.
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

  /** Makes one that does not begin at the front: what that takes, a walk would take however little lay there. */
  async beside<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const from = this.monotonic()
    const answer = await work()
    this.besideMs = this.monotonic() - from
    return answer
  }
}
