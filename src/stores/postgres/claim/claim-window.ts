// How far a claim looks: several times as many runs as it wants, because other claims are picking the same ones at the same
// time, and foreign transactions may have locked some. A run that is picked and not needed costs a read of its row, and no
// lock.
//
// A claim that found nothing but what others hold looks twice as far, and again, up to a bound: a user's transaction that holds
// the first 500 runs must not keep a worker from the next one. It keeps that window for as long as claims need it.
//
// The types that had ready runs at the last look share that, but one more than is wanted is picked of each: all others may
// have none this time, and then it fills the claim and shows whether there is more.

const windowFactor = 4
const leastWindow = 32
/** As far as it goes: this many rows are looked at in some 20 ms. */
const mostWindow = 10_000

export class ClaimWindow {
  /** By shard: as far as claims have to look. */
  private readonly widened = new Map<number, number>()
  /** By shard: how many types had ready runs. */
  private readonly types = new Map<number, number>()

  of(shard: number, limit: number): number {
    return Math.max(windowFactor * limit, leastWindow, this.widened.get(shard) ?? 0)
  }

  /** How many of each type are picked. */
  ofEach(shard: number, limit: number): number {
    return Math.max(limit + 1, Math.ceil(this.of(shard, limit) / (this.types.get(shard) ?? 1)))
  }

  /** A claim found this many types with ready runs. */
  sawTypes(shard: number, types: number): void {
    this.types.set(shard, Math.max(1, types))
  }

  /** A claim that looked so far found nothing but what others hold. True if the next one looks further. */
  widen(shard: number, window: number): boolean {
    if (window >= mostWindow) return false
    this.widened.set(shard, Math.min(2 * window, mostWindow))
    return true
  }

  /** A claim got runs after it had skipped this many, or has seen all. */
  found(shard: number, passed: number): void {
    const widened = this.widened.get(shard)
    if (widened === undefined || 4 * passed > widened) return
    if (widened / 2 > leastWindow) this.widened.set(shard, Math.ceil(widened / 2))
    else this.widened.delete(shard)
  }
}
