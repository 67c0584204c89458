// Citus answers what the memory store answers, and holds what it holds.

import { afterAll, it } from 'vitest'
import { compareWithOracle } from '../simulation/differential.ts'
import { missingCitus } from '../support/citus.ts'
import { withClock } from '../support/postgres-clock.ts'
import { TestCitus } from './cluster.ts'

const citus = new TestCitus()

afterAll(() => citus.remove(), 60_000)

it('PQ-S3 HE-X1 Citus answers what the memory store answers', { timeout: 900_000 }, async (context) => {
  const missing = missingCitus()
  if (missing !== undefined) context.skip(missing)
  await compareWithOracle({
    async open(clock) {
      const { store, clock: table } = await citus.open()
      return withClock(store, table, clock)
    },
    wanted: 1_000,
    shards: 16,
    feedOrder: 'by run',
    file: '--config test/citus/vitest.config.ts test/citus/differential.long.ts',
  })
})
