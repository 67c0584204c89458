// Where the sequencer of the feed begins to look for rows without a position. Its index has only those, and keeps the entries
// of all that got one while a transaction holds an old snapshot: a look from the front steps over every row of the feed since
// then.
//
// The floor is a number up to which every row has its position, for good. A number becomes visible after a higher one,
// however long its transaction takes, and a row that was overlooked would come after later ones of its run; so no time is
// long enough. But a transaction that drew a number no higher than a visible one had begun to write before that, and so is
// known to the snapshot in which that one is visible. Once all those transactions are over, a look that finds nothing more,
// or gives a position to all that it finds, has settled every number up to there:
//
//   seen      a look saw numbers up to this one, and all transactions that may still write a lower one are before its `xmax`
//   settled   a later look had all of these behind it (`xmin`), and left nothing without a position
//
// A transaction that writes and stays open holds the floor where it is; one that only reads does not. A server that was replaced
// by its standby may draw numbers anew, so that once a minute a look begins at the front all the same.

import { WalkPace } from '../claim/walk-pace.ts'

/** No number is lower. */
const front = 0

const walks = { leastMs: 60_000, cheapMs: 10 } as const

/** The result of a look at the feed of a shard. */
export interface FeedWalkResult {
  /** Where it began. */
  readonly since: number
  /** The highest number that was visible. */
  readonly highest: number
  /** The bounds of the snapshot of the look: all transactions before the first are over, and none from the second on had begun. */
  readonly xmin: bigint
  readonly xmax: bigint
  /** Nothing that it could see is left without a position. */
  readonly isAll: boolean
}

export class FeedFloor {
  private readonly walkPace: WalkPace
  private floor = front
  private seen: { readonly number: number; readonly xmax: bigint } | null = null

  constructor(monotonic: () => number) {
    this.walkPace = new WalkPace(monotonic, walks)
  }

  /** The next look begins after this number. */
  get since(): number {
    return this.walkPace.isDue ? front : this.floor
  }

  /** Makes a look that begins after that number. */
  look<Answer>(since: number, work: () => Promise<Answer>): Promise<Answer> {
    return since === front ? this.walkPace.walk(work) : work()
  }

  saw({ since, highest, xmin, xmax, isAll }: FeedWalkResult): void {
    // A row before the floor is older than possible: no remembered number is valid any more.
    if (!isAll && since < this.floor) this.floor = since
    if (isAll && this.seen !== null && xmin >= this.seen.xmax) {
      this.floor = Math.max(this.floor, this.seen.number)
      this.seen = null
    }
    this.seen ??= { number: highest, xmax }
  }
}
