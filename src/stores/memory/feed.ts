// All entries of all runs in commit order, as two arrays side by side: an object for each would double what an entry
// costs.

import type { Entry } from '../../core/entry.ts'
import type { Change } from '../../store.ts'
import { copied, type Row } from './row.ts'

export class Feed {
  private readonly rows: Row[] = []
  private readonly seqs: number[] = []

  /** The last entry of this row has just been appended. */
  add(row: Row): void {
    this.rows.push(row)
    this.seqs.push(row.seq)
  }

  read(after: number, limit: number): readonly Change[] {
    return this.rows.slice(after, after + limit).map((row, index) => ({
      position: after + index + 1,
      runId: row.id,
      entry: copied(row.entries[(this.seqs[after + index] ?? 0) - 1] as Entry),
    }))
  }
}
