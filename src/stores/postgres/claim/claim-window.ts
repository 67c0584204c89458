// How far a claim looks: further than it wants, because other claims are picking the same runs at the same time, and foreign
// transactions may have locked some. A run that is picked and not needed costs a read of its row, and no lock. So a claim looks
// at four times as many as it wants. A claim of one type, once it is known how many claims have to skip, looks further than it
// wants by twice that number, by an eighth at least and by as many again at most: a worker that is alone reads hardly more than
// it takes, and one that meets others begins elsewhere (claim-offset.ts) instead of looking ever further.
//
// A claim that found nothing but what others hold looks twice as far, and again, up to a bound: a user's transaction that holds
// the first 500 runs must not keep a worker from the next one. It keeps that window for as long as claims need it.
//
// The types that had ready runs at the last look share that. If all but one of them have none this time, that one does not fill
// the claim: then a second look reads one more than is wanted of each, which fills it and shows whether there is more.

const windowFactor = 4
const leastWindow = 32
/** A claim of one type looks further than it wants by this share at least: others may begin to claim at any time. */
const leastSpareShare = 1 / 8
/** As far as it goes: this many rows are looked at in some 20 ms. */
const mostWindow = 10_000

export class ClaimWindow {
  /** By shard: as far as claims have to look. */
  private readonly widened = new Map<number, number>()
  /** By shard: how many types had ready runs. */
  private readonly types = new Map<number, number>()
  /** By shard: twice as many as claims had to skip lately. */
  private readonly spares = new Map<number, number>()

  of(shard: number, limit: number): number {
    return Math.max(windowFactor * limit, leastWindow, this.widened.get(shard) ?? 0)
  }

  /** The same for a claim of one type, by how many the last ones had to skip. */
  ofOne(shard: number, limit: number): number {
    const whole = this.of(shard, limit)
    const spare = Math.max(leastWindow, Math.ceil(limit * leastSpareShare), this.spares.get(shard) ?? whole)
    return Math.min(whole, Math.max(limit + spare, this.widened.get(shard) ?? 0))
  }

  /** How many of each type are read: a share, or as many as fill the claim alone. */
  ofEach(shard: number, limit: number, each: 'share' | 'all'): number {
    const share = Math.ceil(this.of(shard, limit) / (this.types.get(shard) ?? 1))
    return each === 'share' ? share : Math.max(limit + 1, share)
  }

  /** An offset of so many runs, as rounds in which each of these types has a run. */
  rounds(shard: number, offset: number, types: number): number {
    return Math.ceil(offset / Math.max(1, Math.min(types, this.types.get(shard) ?? 1)))
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

  /** A claim of so many runs got some after it had skipped this many, or has seen all. */
  found(shard: number, passed: number, limit: number): void {
    const spare = this.spares.get(shard) ?? 0
    this.spares.set(shard, Math.min(Math.max(2 * passed, Math.floor(spare / 2)), limit))
    const widened = this.widened.get(shard)
    if (widened === undefined || 4 * passed > widened) return
    if (widened / 2 > leastWindow) this.widened.set(shard, Math.ceil(widened / 2))
    else this.widened.delete(shard)
  }
}
