// The entries that a claim of several shards brings along are bounded together, not shard by shard.

import { expect, it } from 'vitest'
import { mostFreshBytes } from '../../../../../src/core/rules/claims/claim.ts'
import type { Run } from '../../../../../src/core/model/run.ts'
import type { Entry } from '../../../../../src/core/model/entry.ts'
import type { Claimed } from '../../../../../src/store.ts'
import { claimInTurn } from '../../../../../src/stores/postgres/claim/claim-in-turn.ts'

it('brings no more first entries than one claim may, and leases all the runs', async () => {
  const half = 'ä'.repeat(mostFreshBytes / 4)
  const claim = async (shard: number): Promise<Claimed> => ({
    runs: [{ id: `run ${shard}` } as Run],
    fresh: [{ runId: `run ${shard}`, entry: { data: shard === 2 ? null : half } as Entry }],
    more: false,
    nextDue: null,
    now: 1,
  })
  const claimed = await claimInTurn({ shards: 5, random: () => 0, look: null, claim, limit: 100 })
  expect(claimed.runs.map(({ id }) => id)).toEqual(['run 0', 'run 1', 'run 2', 'run 3', 'run 4'])
  expect(claimed.fresh?.map(({ runId }) => runId)).toEqual(['run 0', 'run 1', 'run 2'])
})
