// Entries on their way into the journal, and the one row of the feed that tells of those that it is to tell of, as the statements
// take them.

import type { Draft } from '../../core/entry.ts'

/** An entry as JSON: run, seq, kind, name, meta, data and the transition that appended it. */
interface EntryJson {
  readonly r: string
  readonly s: number
  readonly k: string
  readonly n: string | null
  readonly m: string | null
  readonly d: string | null
  readonly t: string | null
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

  /** Appends entries after `seq`; the transition's id stands on the first. The feed tells of the last `told` of them. */
  add(runId: string, seq: number, drafts: readonly Draft[], transition: string | null, told: number): void {
    if (drafts.length === 0) return
    let s = seq
    let t = transition
    for (const { kind, name, meta, data } of drafts) {
      s += 1
      this.entries.push({ r: runId, s, k: kind, n: name, m: meta === null ? null : JSON.stringify(meta), d: data, t })
      t = null
    }
    if (told > 0) this.ranges.push({ r: runId, first: s - told + 1, last: s })
  }

  /** The feed tells of the first entry of a run that was inserted with it. */
  addFirst(runId: string): void {
    this.ranges.push({ r: runId, first: 1, last: 1 })
  }

  /** The feed has nothing to tell. */
  get isUntold(): boolean {
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
