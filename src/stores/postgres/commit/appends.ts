// Entries on their way into the journal, and the one row of the feed for those that are in the feed, as the statements take
// them.

import type { Draft } from '../../../core/model/entry.ts'

/** An entry as JSON: run, seq, kind, name, meta, data and the transition that appended it. Absent fields are left out. */
interface EntryJson {
  readonly r: string
  readonly s: number
  readonly k: string
  readonly n: string | undefined
  readonly m: string | undefined
  readonly d: string | undefined
  readonly t: string | undefined
}

/** The columns of `EntryJson`. */
export const entryColumns = 'r uuid, s integer, k text, n text, m text, d text, t text'

/** Entries `first` to `last` of a run. */
interface Range {
  readonly r: string
  readonly first: number
  readonly last: number
}

export class Appends {
  private readonly entries: EntryJson[] = []
  private readonly ranges: Range[] = []

  /** Appends entries after `seq`; the transition's id is on the first. The last `told` of them are in the feed. */
  add(runId: string, seq: number, drafts: readonly Draft[], transition: string | null, fed: number): void {
    if (drafts.length === 0) return
    let s = seq
    let t = transition ?? undefined
    for (const { kind, name, meta, data } of drafts) {
      s += 1
      const m = meta === null ? undefined : JSON.stringify(meta)
      this.entries.push({ r: runId, s, k: kind, n: name ?? undefined, m, d: data ?? undefined, t })
      t = undefined
    }
    if (fed > 0) this.ranges.push({ r: runId, first: s - fed + 1, last: s })
  }

  /** The first entry of a run is in the feed, and was inserted with the run. */
  addFirst(runId: string): void {
    this.ranges.push({ r: runId, first: 1, last: 1 })
  }

  /** The feed has nothing to tell. */
  get isFeedEmpty(): boolean {
    return this.ranges.length === 0
  }

  get isEmpty(): boolean {
    return this.entries.length === 0
  }

  get entriesJson(): string {
    return JSON.stringify(this.entries)
  }

  get rangesJson(): string {
    return JSON.stringify(this.ranges)
  }
}
