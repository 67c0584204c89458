// What a checker must know of a call or a store besides its answers.

import type { Chore } from '../../src/core/model/chore.ts'
import { holds, type Lease, type Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { BeatRequest, ClaimRequest, NewRun, Store } from '../../src/store.ts'
import type { ReadCommittedStore } from '../read-committed/store.ts'
import type { Cause } from '../../src/testing/invariants/index.ts'

/**
 * Who called for a run, as far as the request shows. A request to release may hold several leases of one run: one that is sent again
 * and the one that its session got since.
 */
export function callerOf(
  method: keyof Store,
  request: unknown,
  runId: string,
  before: Run | undefined,
): Pick<Cause, 'session' | 'token'> {
  const nobody = { session: null }
  switch (method) {
    case 'claim':
    case 'beat':
      return { session: (request as ClaimRequest | BeatRequest).session }
    case 'start':
      return (request as readonly NewRun[]).find(({ id }) => id === runId)?.lease ?? nobody
    case 'commit':
      return (request as readonly Transition[]).find((one) => one.runId === runId)?.guard.lease ?? nobody
    case 'release':
      return (
        (request as readonly (Lease & { runId: string })[]).find(
          (one) => one.runId === runId && before !== undefined && holds(before, one),
        ) ?? nobody
      )
    default:
      return nobody
  }
}

/** What is left to do in the store. */
export function choresIn({ insides }: ReadCommittedStore): readonly Chore[] {
  const tx = insides.db.begin('chores')
  const chores = tx.select(insides.tables.chores, {})
  tx.rollBack()
  return chores
}
