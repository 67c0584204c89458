// Everything that can befall a run, with every invariant checked after every call of the store.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from 'holdfast/sqlite'
import type { VirtualClock } from 'holdfast/testing'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { fates, Life, type Fate } from '../support/life.ts'
import { watch, type WaitTarget } from '../support/watched-store.ts'

const stores = [
  ['memory', async (clock: VirtualClock) => new MemoryStore({ clock }), 60],
  ['sqlite', (clock: VirtualClock) => openSqliteStore({ path: ':memory:', clock }), 20],
] as const

const everyFate: readonly Fate[] = [...fates, 'cancel now', 'retry', 'wait']
const chance = Number(process.env['LIFE_RUNS'] ?? 1)

describe.each(stores)('on the %s store', (_, make, count) => {
  it('no life breaks an invariant, nor does any step of it', { timeout: 240_000 }, async () => {
    const life = fc.array(fc.constantFrom(...everyFate), { minLength: 3, maxLength: 9 })
    await fc.assert(
      fc.asyncProperty(life, fc.boolean(), fc.integer({ min: 0, max: 4 }), async (suffered, heeds, stubborn) => {
        expect(await violations(suffered, { heeds, stubborn }, make)).toEqual([])
      }),
      { numRuns: count * chance },
    )
  })
})

async function violations(
  suffered: readonly Fate[],
  options: { readonly heeds: boolean; readonly stubborn: number },
  make: (typeof stores)[number][1],
): Promise<WaitTarget['violations']> {
  let watched: WaitTarget | undefined
  const life = await Life.begin({
    ...options,
    makeStore: async (clock) => {
      const store = await make(clock)
      await store.migrate()
      watched = watch(store, () => clock.now())
      return watched.store
    },
  })
  try {
    for (const fate of suffered) await life.suffer(fate)
    await life.heal()
    return watched?.violations ?? []
  } finally {
    await life.close()
  }
}
