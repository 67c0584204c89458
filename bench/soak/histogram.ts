// Times by the million in the memory of a few: each is counted in a bucket whose bounds are 2 % apart, so that a quantile is
// off by 1 % at most, however many were counted. A soak of hours needs no more than one of seconds.

const growth = 1.02
const shortestMs = 0.01
const bucketCount = 1 + Math.ceil(Math.log(1e9 / shortestMs) / Math.log(growth))

export class Histogram {
  private readonly buckets = new Uint32Array(bucketCount)
  private total = 0
  private longest = 0

  add(ms: number): void {
    this.buckets[bucketOf(ms)]! += 1
    this.total += 1
    this.longest = Math.max(this.longest, ms)
  }

  get count(): number {
    return this.total
  }

  /** The longest of all, exactly; null if there is none. */
  get max(): number | null {
    return this.total === 0 ? null : this.longest
  }

  /** The time that so large a share of all stayed within; null if there is none. */
  quantile(share: number): number | null {
    if (this.total === 0) return null
    let left = Math.max(1, Math.ceil(share * this.total))
    for (const [bucket, count] of this.buckets.entries()) {
      left -= count
      if (left <= 0) return Math.min(middleOf(bucket), this.longest)
    }
    return this.longest
  }

  clear(): void {
    this.buckets.fill(0)
    this.total = 0
    this.longest = 0
  }
}

function bucketOf(ms: number): number {
  if (!(ms > shortestMs)) return 0
  return Math.min(bucketCount - 1, Math.ceil(Math.log(ms / shortestMs) / Math.log(growth)))
}

function middleOf(bucket: number): number {
  return shortestMs * growth ** (bucket - 0.5)
}
