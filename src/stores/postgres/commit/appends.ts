// Entries on their way into the journal, and the one row of the feed for those that are in the feed, as the statements take
// them.

import type { Draft } from '../../../core/model/entry.ts'
import { ArrayText, rowsFrom } from '../array-text.ts'

/** Entries as columns: run, seq, kind, name, meta, data and the transition that appended it. */
const columns = { r: 'uuid', s: 'integer', k: 'text', n: 'text', m: 'text', d: 'text', t: 'text' }

/** How many values the entries of a batch take. */
export const entryValues = Object.keys(columns).length

/** The rows of entries whose first value has that place. */
export function entriesFrom(first: number): string {
  return `${rowsFrom(columns, first)} as entry`
}

/** Entries `first` to `last` of a run. */
interface Range {
  readonly r: string
  readonly first: number
  readonly last: number
}

export class Appends {
  private readonly r = new ArrayText()
  private readonly s = new ArrayText()
  private readonly k = new ArrayText()
  private readonly n = new ArrayText()
  private readonly m = new ArrayText()
  private readonly d = new ArrayText()
  private readonly t = new ArrayText()
  private readonly ranges: Range[] = []
  isEmpty = true

  /** Appends entries after `seq`; the transition's id is on the first. The last `fed` of them are in the feed. */
  add(runId: string, seq: number, drafts: readonly Draft[], transition: string | null, fed: number): void {
    if (drafts.length === 0) return
    this.isEmpty = false
    let s = seq
    for (const { kind, name, meta, data } of drafts) {
      s += 1
      this.r.add(runId)
      this.s.add(s)
      this.k.add(kind)
      this.n.add(name)
      this.m.add(meta === null ? null : JSON.stringify(meta))
      this.d.add(data)
      this.t.add(s === seq + 1 ? transition : null)
    }
    if (fed > 0) this.ranges.push({ r: runId, first: s - fed + 1, last: s })
  }

  /** The first entry of a run is in the feed, and was inserted with the run. */
  addFirst(runId: string): void {
    this.ranges.push({ r: runId, first: 1, last: 1 })
  }

  /** The feed has nothing to list. */
  get isFeedEmpty(): boolean {
    return this.ranges.length === 0
  }

  /** What `entriesFrom` reads. */
  get values(): readonly string[] {
    const { r, s, k, n, m, d, t } = this
    return [r, s, k, n, m, d, t].map(String)
  }

  get rangesJson(): string {
    return JSON.stringify(this.ranges)
  }
}
