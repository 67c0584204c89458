// What runs cost Postgres besides time. The write-ahead log is measured by how far its end moved, and transactions that
// wrote are counted by the ids that they took: each takes one, and one that only reads takes none. (The server's own counter
// of commits counts both, and is up to a second late.) A NOTIFY takes an id, too, though it does not wait for the disk. Both
// numbers are of the whole server, its housekeeping included.

import type { Client } from 'pg'
import { withClient } from './postgres.ts'
import type { Goals, Reading } from './scenario.ts'
import { storeKindOf } from './stores.ts'

export interface Writes {
  readonly walBytes: number
  readonly transactions: number
}

/** Does the work, and says what was written meanwhile; null for a store that is not on Postgres. */
export async function countWrites<Answer>(
  store: string,
  work: () => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly writes: Writes | null }> {
  if (storeKindOf(store) !== 'postgres') return { answer: await work(), writes: null }
  return withClient(store, async (client) => {
    const before = await readWrites(client)
    const answer = await work()
    const after = await readWrites(client)
    return {
      answer,
      writes: {
        walBytes: after.walBytes - before.walBytes,
        transactions: after.transactions - before.transactions,
      },
    }
  })
}

interface WritesOptions {
  /** Distinguishes them from those of another half of the sample. */
  readonly what?: string
  readonly per?: 'run' | 'step'
  readonly mostTransactions?: number
}

/** What one of so many wrote, as lines of the table. */
export function readingsOfWrites(
  writes: Writes | null,
  count: number,
  { what = '', per = 'run', mostTransactions }: WritesOptions = {},
): readonly Reading[] {
  if (writes === null) return []
  const goals: Goals = mostTransactions === undefined ? {} : { postgres: { is: 'at most', value: mostTransactions } }
  return [
    { metric: `${what}WAL`, unit: `bytes/${per}`, value: writes.walBytes / count, better: 'lower' },
    {
      metric: `${what}write transactions`,
      unit: `per ${per}`,
      value: writes.transactions / count,
      goals,
      better: 'lower',
    },
  ]
}

async function readWrites(client: Client): Promise<Writes> {
  const { rows } = await client.query<{ wal: string; next: string }>(
    "select pg_current_wal_insert_lsn() - '0/0' as wal, pg_snapshot_xmax(pg_current_snapshot()) as next",
  )
  return { walBytes: Number(rows[0]?.wal), transactions: Number(rows[0]?.next) }
}
