// What a transaction appends: entries of any number of runs, and the one row of the feed that lists those that it is to list.

import type { Draft, Entry } from '../../../src/core/model/entry.ts'
import type { StatementName } from '../statement-plan.ts'
import type { Execution } from '../database/call.ts'
import type { EntryRow, FeedRow } from '../database/tables.ts'

export interface Appended {
  readonly runId: string
  readonly seq: number
  readonly drafts: readonly Draft[]
  readonly transition: string | null
  readonly at: number
  readonly fed: number
}

export class Appends {
  private readonly entries: EntryRow[] = []
  private readonly ranges: FeedRow['ranges'][number][] = []

  /** Entries that come after `seq`; the transition's id stands on the first. The feed lists the last `fed` of them. */
  add({ runId, seq, drafts, transition, at, fed }: Appended): void {
    if (drafts.length === 0) return
    for (const [index, { kind, name, meta, data }] of drafts.entries()) {
      const place = { seq: seq + index + 1, at, transition: index === 0 ? transition : null }
      const entry = structuredClone({ kind, name, meta, data, ...place }) as Entry
      this.entries.push({ runId, entry })
    }
    const last = seq + drafts.length
    if (fed > 0) this.ranges.push([runId, last - fed + 1, last])
  }

  /** Whether an entry that is appended to a run carries this transition id. */
  has(runId: string, transition: string): boolean {
    return this.entries.some((one) => one.runId === runId && one.entry.transition === transition)
  }

  /** The last entry that is appended to a run. */
  last(runId: string): Entry | undefined {
    return this.entries.findLast((one) => one.runId === runId)?.entry
  }

  async append(x: Execution, name: StatementName): Promise<void> {
    if (this.entries.length > 0) await x.run(name, (tx) => tx.insert(x.tables.journal, this.entries))
  }

  /** The number is drawn now, when all runs are locked. */
  async feed(x: Execution, name: StatementName): Promise<void> {
    if (this.ranges.length === 0) return
    await x.run(name, (tx) =>
      tx.insert(x.tables.feed, [{ number: x.nextNumber(), ranges: this.ranges, position: null }]),
    )
  }
}
