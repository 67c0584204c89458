// Runs that cannot be changed, because a policy of row-level security refuses that. Claims, rescues and ends would come to
// the same ones again and again, so they are left out for a while, longer each time, and then tried once more: the policy may
// have changed.

/** How long a run is left out, and how many are known at once. */
const bounds = { firstMs: 5_000, longestMs: 300_000, most: 2_000 } as const

interface Refusal {
  readonly until: number
  readonly ms: number
}

export class RefusedRuns {
  private readonly monotonic: () => number
  private readonly refusals = new Map<string, Refusal>()

  constructor(monotonic: () => number) {
    this.monotonic = monotonic
  }

  get hasAny(): boolean {
    return this.refusals.size > 0
  }

  /** Those that are left out now. */
  get current(): readonly string[] {
    if (this.refusals.size === 0) return []
    const now = this.monotonic()
    return Array.from(this.refusals).flatMap(([id, { until }]) => (until > now ? [id] : []))
  }

  /** Takes note of a refusal; true if it is the first of that run. */
  add(id: string): boolean {
    const known = this.refusals.get(id)
    const ms = known === undefined ? bounds.firstMs : Math.min(2 * known.ms, bounds.longestMs)
    this.refusals.delete(id)
    this.refusals.set(id, { until: this.monotonic() + ms, ms })
    const [oldest] = this.refusals.keys()
    if (this.refusals.size > bounds.most && oldest !== undefined) this.refusals.delete(oldest)
    return known === undefined
  }

  /** It was taken after all. */
  forget(id: string): void {
    this.refusals.delete(id)
  }
}
