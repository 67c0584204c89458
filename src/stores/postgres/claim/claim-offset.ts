// Where a claim begins among runs of the same rank. Workers that drain one backlog all see the same first runs, and
// each has to skip those that the others are about to lease: the more it reads for that, the longer its claim takes, and the
// more of what it has read is gone when it comes to lock it. Sixteen workers read 4,000 runs for each 90 that they leased.
//
// So a claim that had to skip more than a quarter of what it wanted makes the next ones begin at a random place further on, and
// return to the first runs only if there are not enough behind that. The places are as far from each other as a claim is long,
// and there are fifty at most: one claim in fifty begins at the first run under any contention. The offset never leads past a rank:
// urgent runs come first. It shrinks with every claim that met no other, so a worker that is alone begins at the first run.

const leastShare = 1 / 4
const keptShare = 0.9
const mostPlaces = 50
/** As many runs as forty workers lease with a hundred each. They are read without a lock, in about 2 ms. */
const mostOffset = 4_000

export class ClaimOffset {
  private readonly random: () => number
  /** By shard: how far from the first run a claim may begin. */
  private readonly reaches = new Map<number, number>()

  /** `random` is at least 0 and less than 1. */
  constructor(random: () => number) {
    this.random = random
  }

  /** How many of the first runs the next claim of so many leaves to others, as long as there are others of the same rank. */
  next(shard: number, limit: number): number {
    const places = Math.min(Math.ceil((this.reaches.get(shard) ?? 0) / limit), mostPlaces)
    return limit * Math.floor(this.random() * places)
  }

  /** A claim of so many runs had to skip some that it tried to lock. */
  skipped(shard: number, count: number, limit: number): void {
    const reach = this.reaches.get(shard) ?? 0
    if (count > limit * leastShare) this.reaches.set(shard, Math.min(2 * Math.max(reach, limit), mostOffset))
    else if (reach >= 1) this.reaches.set(shard, reach * keptShare)
    else this.reaches.delete(shard)
  }

  /** The next claim begins at the first run. False if it would have anyway. */
  reset(shard: number): boolean {
    return this.reaches.delete(shard)
  }
}
