// The oldest Postgres that is promised: the contract, and the comparison with the memory store, on version 15.

import { afterAll, it } from 'vitest'
import { runContract } from '../contract/run-contract.ts'
import { compareWithOracle } from '../simulation/differential.ts'
import { withClock } from '../support/postgres-clock.ts'
import { missingPostgres } from '../support/postgres-binaries.ts'
import { forgetServer, openTestStore, type TestStore, type TestStoreOptions } from '../support/postgres-store.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'

const missing = missingPostgres('15')
let started: Promise<Cluster> | undefined

async function open(options: TestStoreOptions = {}): Promise<TestStore> {
  started ??= startPostgres({ version: '15', settings: { fsync: 'off' } })
  const { url } = await started
  return openTestStore({ server: url, ...options })
}

afterAll(async () => {
  const cluster = await started
  if (cluster === undefined) return
  await forgetServer(cluster.url)
  await cluster.remove()
})

runContract('Postgres 15', () => open({ hears: true }), missing)
runContract('Postgres 15 in distributed mode', () => open({ shards: 16, distributed: true }), missing)

it('PQ-S3 HE-X1 Postgres 15 answers what the memory store answers', { timeout: 900_000 }, async (context) => {
  if (missing !== undefined) context.skip(missing)
  await compareWithOracle({
    async open(clock) {
      const { store, clock: table } = await open()
      return withClock(store, table, clock)
    },
    wanted: 3_000,
    feedOrder: 'by run',
    file: '--config test/postgres/vitest.config.ts test/postgres/fifteen.long.ts',
  })
})
