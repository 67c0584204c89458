// Planted bugs of the feed: one that leaves out what others than the holder write, and one that lists runs that did not ask.

import type { Change } from '../../src/store.ts'
import { changed, insides, type Canary } from './planting.ts'
import type { StoreMutation } from './simulate.ts'

const withoutCrashes: StoreMutation = (store) =>
  changed(store, {
    changes: async (after, limit): Promise<readonly Change[]> => {
      const changes = await store.changes(0, Number.POSITIVE_INFINITY)
      const kept = changes.filter(({ entry }) => entry.kind !== 'crashed')
      return kept.map((change, index) => ({ ...change, position: index + 1 })).slice(after, after + limit)
    },
  })

const everyRun: StoreMutation = (store) =>
  changed(store, {
    commit: async (transitions) => {
      const rows = transitions.flatMap(({ runId }) => insides(store).tables.rows.get(runId) ?? [])
      const quiet = rows.filter(({ feed }) => !feed)
      for (const row of quiet) row.feed = true
      const answers = store.commit(transitions)
      for (const row of quiet) row.feed = false
      return answers
    },
  })

export const feedCanaries: readonly Canary[] = [
  {
    name: 'feed-without-crashes',
    bug: 'the feed leaves out what nobody who holds a run has written',
    budget: 200,
    mutation: withoutCrashes,
  },
  { name: 'feed-of-all', bug: 'the feed lists runs that did not ask for it', budget: 200, mutation: everyRun },
]
