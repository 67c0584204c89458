// `kill -9` at random moments, in a size that fits into every test run. `npm run chaos` is the same with 50 kills.

import { describe, expect, it } from 'vitest'
import { drill } from './drill.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000)

describe('processes that are killed at random moments', { timeout: 90_000 }, () => {
  it(`IF-C3 PQ-E4 SW-C1 SW-E1 lose nothing and repeat nothing that was recorded (seed ${seed})`, async () => {
    const report = await drill({ kills: 12, runs: 60, seed })
    expect(report.violations, `Again: npm run chaos -- --kills 12 --runs 60 --seed ${seed}`).toEqual([])
    expect(report).toMatchObject({ kills: 12, runs: 60, steps: 300 })
    // Otherwise the kills hit nobody and the test says nothing.
    expect(report.takeovers).toBeGreaterThan(0)
    expect(report.repeated).toBeGreaterThan(0)
  })
})
