// Every store answers what the memory store answers. A failure names its world, and how to do that one again.

import { it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { withClock } from '../support/postgres-clock.ts'
import { openTestStore } from '../support/postgres-store.ts'
import type { TestClock } from '../support/side-by-side.ts'
import { compareWithOracle } from './differential.ts'

const file = 'test/simulation/differential.test.ts'
const timeout = 900_000

/** More, for those who have the time: every operation is a few round trips. */
const onPostgres = Number(process.env['OPERATIONS'] ?? 3_000)

it('SW-S6 PQ-S3 HE-X1 SQLite answers what the memory store answers, and holds what it holds', { timeout }, () =>
  compareWithOracle({
    open: (clock) => openSqliteStore({ path: ':memory:', driver: 'libsql', clock }),
    wanted: 20_000,
    // A table that is not complete by then has a cell that no operation leads to.
    most: 40_000,
    file,
  }),
)

/** What a transition that does not fit makes comes later than the rest of its batch. */
const feedOrder = 'by run'

async function postgres(clock: TestClock, options: Parameters<typeof openTestStore>[0] = {}) {
  const { store, clock: table } = await openTestStore(options)
  return withClock(store, table, clock)
}

it('PQ-S3 HE-X1 IF-S1 Postgres answers what the memory store answers, and holds what it holds', { timeout }, () =>
  compareWithOracle({ open: postgres, wanted: onPostgres, feedOrder, file }),
)

it('PQ-S3 HE-X1 Postgres with 16 shards in distributed mode holds what the memory store holds', { timeout }, () =>
  compareWithOracle({
    open: (clock) => postgres(clock, { shards: 16, distributed: true }),
    wanted: onPostgres / 3,
    shards: 16,
    feedOrder,
    file,
  }),
)
