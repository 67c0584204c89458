// Every planted bug must be found within its seeds: one that survives means that the checker is blind there.

import { describe, expect, it } from 'vitest'
import { simulateBatch } from './batch.ts'
import { canaries } from './canaries.ts'

const patienceMs = 400_000

describe('planted bugs', () => {
  it.each(canaries)(
    '$name is found: $bug',
    async ({ name, budget, from = 0 }) => {
      const tally = await simulateBatch({ from, seeds: budget, canary: name, twice: false, stopsAtFirst: true })
      expect(tally.failures, `${name} survives ${budget} seeds`).toHaveLength(1)
    },
    patienceMs,
  )

  it('no two have one name', () => {
    expect(new Set(canaries.map(({ name }) => name)).size).toBe(canaries.length)
  })
})
