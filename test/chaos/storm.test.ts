// Everything that can go wrong with real processes, in a size that fits into every test run. `npm run chaos` is the same for
// as long as one likes.

import { describe, expect, it } from 'vitest'
import { performChaos } from './chaos.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000)
const print = (line: string): void => console.log(line)

describe('chaos', { timeout: 300_000 }, () => {
  it.each([
    ['postgres', 0.6],
    ['sqlite', 0.2],
  ] as const)(
    `IF-C3 PQ-E4 SW-C1 SW-E1 loses nothing and doubles nothing on %s (seed ${seed})`,
    async (store, minutes) => {
      const chaos = await performChaos({ store, minutes, seed, workers: 4, plant: 'none', print })
      expect(chaos.violations).toEqual([])
      expect(chaos.result?.counts).toMatchObject({ lost: 0, doubled: 0 })
      // Otherwise nothing was hit, and the test says nothing.
      expect(chaos.faults).toBeGreaterThan(3)
      expect(chaos.result?.counts.takeovers).toBeGreaterThan(0)
    },
  )

  it.each(['postgres', 'sqlite'] as const)(
    `no run is blamed for a restart of every worker every two seconds on %s (seed ${seed})`,
    async (store) => {
      const chaos = await performChaos({
        store,
        minutes: 0.2,
        seed,
        workers: 3,
        plant: 'none',
        only: ['restarts'],
        print,
      })
      expect(chaos.violations).toEqual([])
      expect(chaos.result?.counts).toMatchObject({ lost: 0, doubled: 0, givenUp: 0 })
      expect(chaos.result?.counts.takeovers).toBeGreaterThan(0)
    },
  )
})
