// Holdfast in a crowd: workflows without steps.

import { createHoldfast, workflow, type Store } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { logger } from '../logger.ts'
import { typeName, type Queue } from './queue.ts'

const startsAtOnce = 1_000

function workflowsOf(types: number, performed: () => void) {
  return Array.from({ length: types }, (_, index) => workflow(typeName(index), (_ctx, _order: number) => performed()))
}

export const holdfastQueue: Queue = {
  name: 'holdfast',

  async enqueue({ url, schema, types }, jobs) {
    const workflows = workflowsOf(types, () => undefined)
    const store = await openPostgresStore({ url, schema, logger })
    const holdfast = await createHoldfast({ store, workflows, logger })
    let left = jobs
    const customer = async (): Promise<void> => {
      for (; left > 0;) {
        left -= 1
        await holdfast.start(workflows[left % types]!, left)
      }
    }
    const began = performance.now()
    await Promise.all(Array.from({ length: startsAtOnce }, customer))
    const ms = performance.now() - began
    await holdfast.close()
    await store.close()
    return ms
  },

  async open({ url, schema, types }, slots, performed) {
    const claims = { all: 0, empty: 0 }
    const store = await openPostgresStore({ url, schema, logger })
    countClaims(store, claims)
    const holdfast = await createHoldfast({ store, workflows: workflowsOf(types, performed), logger })
    return {
      async start() {
        await holdfast.work({ concurrency: slots })
      },
      async stop() {
        await holdfast.close()
        await store.close()
      },
      claims: () => claims,
    }
  },

  left: ({ schema }) => `select exists (select from "${schema}".runs where ended_at is null) as left`,
}

function countClaims(store: Store, claims: { all: number; empty: number }): void {
  const claim = store.claim.bind(store)
  store.claim = async (request) => {
    const claimed = await claim(request)
    claims.all += 1
    if (claimed.runs.length === 0) claims.empty += 1
    return claimed
  }
}
