// What a refusal of the store is called by whom it concerns.

import { expect, it } from 'vitest'
import { createCommitter } from '../../../src/engine/batch/committer.ts'
import type { Refusal } from '../../../src/store.ts'
import { manualPorts } from '../../support/manual-ports.ts'
import { Scribe } from '../../support/scripted-store.ts'

it.each([
  ['not-found', 'RUN_NOT_FOUND'],
  ['lease-lost', 'LEASE_LOST'],
  ['stale', 'STALE_WRITE'],
  ['cancelling', 'RUN_CANCELLING'],
  ['timed-out', 'RUN_TIMEOUT'],
  ['resumed', 'RUN_RESUMED'],
  ['key-taken', 'RUN_EXISTS'],
] satisfies [Refusal, string][])('a write that is refused as %s is rejected with %s', async (reason, code) => {
  const refused = reason === 'cancelling' ? { reason, controlRequest: null } : { reason }
  const commit = () => Promise.resolve([{ outcome: 'refused', ...refused } as const])
  const committer = createCommitter({ commit }, manualPorts())
  await expect(committer.submit(new Scribe('a').write(['one']))).rejects.toMatchObject({
    code,
    details: { runId: 'a' },
  })
})
