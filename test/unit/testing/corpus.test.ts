// Runs in all kinds of states break no invariant, on any store, by the predicates and by what the store says of itself.

import { describe, expect, it } from 'vitest'
import { openSqliteStore } from 'holdfast/sqlite'
import type { VirtualClock } from 'holdfast/testing'
import { MemoryStore } from '../../../src/stores/memory/store.ts'
import { checkAll, checkFeed } from '../../../src/testing/invariants/index.ts'
import { makeCorpus } from '../../support/corpus.ts'
import { statesOf, watch, type WaitTarget } from '../../support/watched-store.ts'

const stores = [
  ['memory', async (clock: VirtualClock) => new MemoryStore({ clock })],
  ['sqlite', (clock: VirtualClock) => openSqliteStore({ path: ':memory:', clock })],
] as const

describe.each(stores)('a healthy %s store', (_, make) => {
  it('breaks no invariant in any state, nor with any step between two', async () => {
    let watched: WaitTarget | null = null
    const { store, clock, close } = await makeCorpus(async (clock) => {
      const inner = await make(clock)
      await inner.migrate()
      watched = watch(inner, () => clock.now())
      return watched.store
    })
    const states = await statesOf(store)
    expect((watched as WaitTarget | null)?.violations).toEqual([])
    expect([...checkAll(states, clock.now()), ...checkFeed(await store.changes(0, 1e6), states)]).toEqual([])
    const checked = await store.doctor()
    expect(checked.filter(({ offenders }) => offenders.length > 0)).toEqual([])
    expect(checked.length).toBeGreaterThan(20)
    await close()
  })
})
