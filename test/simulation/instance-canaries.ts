// Planted bugs of transitions without a lease, and of what an end settles: only seeds that have instances can show them.

import { holds } from '../../src/core/model/run.ts'
import { firstSeed } from './instances.ts'
import { changed, insides, onCommit, type Canary } from './planting.ts'
import type { StoreMutation } from './simulate.ts'

/** It is written as if the holder had sent it. */
const unheldOverHolder = onCommit((transition, row) => {
  const { guard } = transition
  if (guard.lease !== null || row.session === null) return transition
  const lease = { session: row.session, token: row.token }
  return { ...transition, guard: { ...guard, lease }, status: null, due: null }
})

/** The instance records the outcome, whatever became of the lease of the effect. */
const settledByStaleLease: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions) => {
      for (const { runId, guard, settles = null } of transitions) {
        const row = insides(store).tables.rows.get(runId)
        if (settles !== null && row !== undefined && !holds(row, guard.lease)) await store.commit([settles])
      }
      return store.commit(transitions)
    },
  })

/** A decision of an input takes back that a message has woken the instance. */
const wokenForgotten: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions) => {
      const answers = await store.commit(transitions)
      for (const { runId, guard, due } of transitions) {
        const row = insides(store).tables.rows.get(runId)
        const isWoken = guard.lease === null && due === null && row?.status === 'waiting' && row.readiness === 'ready'
        if (isWoken) (store as unknown as Queued).tables.queues.remove(row, 'idle')
      }
      return answers
    },
  })

interface Queued {
  readonly tables: { readonly queues: { remove(row: unknown, readiness: 'idle'): void } }
}

export const instanceCanaries: readonly Canary[] = [
  {
    name: 'lease-less-over-holder',
    bug: 'a transition without a lease is accepted although the run is held',
    budget: 60,
    from: firstSeed,
    mutation: unheldOverHolder,
  },
  {
    name: 'settled-by-stale-lease',
    bug: 'what an end settles is applied although the lease of the effect was lost',
    budget: 200,
    from: firstSeed,
    mutation: settledByStaleLease,
  },
  {
    name: 'woken-forgotten',
    bug: 'a transition without a lease takes back that a message has woken the run',
    budget: 60,
    from: firstSeed,
    mutation: wokenForgotten,
  },
]
