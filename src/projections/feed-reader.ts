// Reads the feed once for all projections of a process. Those that are at its end share what was read last; one that is far
// behind, such as a rebuild, reads pages of its own.

import type { Clock } from '../core/runtime/ports.ts'
import type { Change, Store } from '../store.ts'

/** How long it waits at the end of the feed, unless an entry is expected. */
export const feedPollMs = 200

/** How many entries are read at once. */
export const pageSize = 500

/** How many entries stay in memory for projections that are a little behind. */
const keptEntries = 2_000

export class FeedReader {
  /** How many pages were read from the store. */
  reads = 0
  /** Called when there are entries that no projection here has seen. */
  readonly onEntries = new Set<() => void>()
  private readonly store: Pick<Store, 'changes'>
  private readonly clock: Pick<Clock, 'monotonic'>
  /** There was nothing after that position at that time. */
  private empty: { readonly after: number; readonly at: number } | null = null
  /** The latest entries that were read, without a gap. */
  private kept: readonly Change[] = []
  private readonly underWay = new Map<number, Promise<readonly Change[]>>()

  constructor(store: Pick<Store, 'changes'>, clock: Pick<Clock, 'monotonic'>) {
    this.store = store
    this.clock = clock
  }

  /** Forgets that there was nothing: an entry is expected. */
  expect(): void {
    this.empty = null
  }

  /** The entries after a position, up to a page; none if there are none yet. */
  async read(after: number): Promise<readonly Change[]> {
    const { empty } = this
    // Another projection has just looked.
    if (empty?.after === after && this.clock.monotonic() - empty.at < feedPollMs / 2) return []
    const [first] = this.kept
    const last = this.kept.at(-1)
    if (first !== undefined && last !== undefined && after >= first.position - 1 && after < last.position) {
      const from = after - first.position + 1
      return this.kept.slice(from, from + pageSize)
    }
    return this.underWay.get(after) ?? this.fetch(after)
  }

  private fetch(after: number): Promise<readonly Change[]> {
    this.reads += 1
    const page = this.store
      .changes(after, pageSize)
      .then((changes) => {
        this.keep(changes, after)
        return changes
      })
      .finally(() => this.underWay.delete(after))
    this.underWay.set(after, page)
    return page
  }

  /** A page behind the kept ones is added to them; one that is further on takes their place. */
  private keep(changes: readonly Change[], after: number): void {
    const last = this.kept.at(-1)?.position
    if (changes.length === 0) this.empty = { after, at: this.clock.monotonic() }
    if (changes.length === 0 || (last !== undefined && after < last)) return
    for (const wake of this.onEntries) wake()
    const before = after === last ? this.kept : []
    this.kept = [...before, ...changes].slice(-keptEntries)
  }
}
