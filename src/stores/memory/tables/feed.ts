// The entries of the feed, in commit order, as two arrays side by side: an object for each would double the cost of an entry.

import type { Entry } from '../../../core/model/entry.ts'
import type { Change } from '../../../store.ts'
import { copied, type Row } from './row.ts'

export class Feed {
  private readonly rows: Row[] = []
  private readonly seqs: number[] = []

  /** This many entries, the last of this row, have just been appended. */
  add(row: Row, fed: number): void {
    for (let seq = row.seq - fed + 1; seq <= row.seq; seq += 1) {
      this.rows.push(row)
      this.seqs.push(seq)
    }
  }

  get length(): number {
    return this.rows.length
  }

  read(after: number, limit: number): readonly Change[] {
    return this.rows.slice(after, after + limit).map((row, index) => ({
      position: after + index + 1,
      runId: row.id,
      type: row.type,
      version: row.version,
      key: row.idempotencyKey,
      entry: copied(row.entries[(this.seqs[after + index] ?? 0) - 1] as Entry),
    }))
  }
}
