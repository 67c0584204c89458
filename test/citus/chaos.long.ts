// Processes and machines that go while runs are under way: workers are killed, the coordinator and the nodes with the rows stop
// at once. Nothing may be lost or doubled.

import { expect, it } from 'vitest'
import { performChaos } from '../chaos/chaos.ts'
import { missingCitus } from '../support/citus.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000)

it(
  `IF-C3 PQ-E4 chaos loses nothing and doubles nothing on Citus (seed ${seed})`,
  { timeout: 400_000 },
  async (context) => {
    const missing = missingCitus()
    if (missing !== undefined) context.skip(missing)
    const chaos = await performChaos({
      store: 'citus',
      minutes: 0.6,
      seed,
      workers: 3,
      plant: 'none',
      only: ['kill', 'server-crash', 'node-crash'],
      print: (line) => console.log(line),
    })
    expect(chaos.violations).toEqual([])
    expect(chaos.result?.counts).toMatchObject({ lost: 0, doubled: 0 })
    expect(chaos.faults).toBeGreaterThan(3)
    expect(chaos.result?.counts.takeovers).toBeGreaterThan(0)
  },
)
