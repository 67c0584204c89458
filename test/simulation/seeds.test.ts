// A part of the simulation in every test run. SIMULATE_SEEDS sets how many seeds, each simulated twice; `npm run simulate`
// does the same for any number, on all processors, and shrinks what fails.

import { describe, expect, it } from 'vitest'
import { firstAccountSeed } from './accounts.ts'
import { simulateBatch } from './batch.ts'
import { firstSeed } from './instances.ts'
import { drawScenario } from './nemesis.ts'
import { shrink } from './shrink.ts'
import { simulate } from './simulate.ts'
import { replayCommand } from './story.ts'

const seeds = Number(process.env['SIMULATE_SEEDS'] ?? 400)
/** The machine may be busy; what is measured here is virtual. */
const patienceMs = 600_000

describe('simulated seeds', () => {
  it(
    'crashes, standstills, lost replies and wrong clocks break no promise, and each seed is the same twice',
    async () => {
      const tally = await simulateBatch({ from: 0, seeds, twice: true })
      const failures = tally.failures.map(({ seed, violations }) => `${violations[0]?.name}: ${replayCommand(seed)}`)
      expect(failures).toEqual([])
      // What was not drawn was not tested.
      expect(Math.min(...Object.values(tally.matrix))).toBeGreaterThan(0)
      expect(Math.min(...Object.values(tally.faults))).toBeGreaterThan(0)
      expect(Math.min(tally.crashes, tally.restarts, tally.standstills)).toBeGreaterThan(0)
    },
    patienceMs,
  )

  it(
    'IF-C1 IF-C4 IF-E3 inputs that anyone decides, and effects that settle, lose nothing and happen once',
    async () => {
      const tally = await simulateBatch({ from: firstSeed, seeds: Math.ceil(seeds / 4), twice: true })
      expect(tally.failures.map(({ seed, violations }) => `${violations[0]?.name}: ${replayCommand(seed)}`)).toEqual([])
    },
    patienceMs,
  )

  it(
    'IF-A4 IF-C1 IF-U2 IF-W2 IF-W5 deciders decide each command once, fire each timer once and in time, and are the fold of their journals',
    async () => {
      const tally = await simulateBatch({ from: firstAccountSeed, seeds: Math.ceil(seeds / 8), twice: true })
      expect(tally.failures.map(({ seed, violations }) => `${violations[0]?.name}: ${replayCommand(seed)}`)).toEqual([])
    },
    patienceMs,
  )

  it('a story does not change what happens', async () => {
    const scenario = drawScenario(2)
    const [plain, again] = [await simulate(scenario), await simulate(scenario)]
    expect(again.hash).toBe(plain.hash)
    expect((await simulate(scenario, { keepsStory: true })).events).toBe(plain.events)
  })

  it('neighbouring seeds are not alike', () => {
    const drawn = Array.from({ length: 50 }, (_, seed) => JSON.stringify({ ...drawScenario(seed), seed: 0 }))
    expect(new Set(drawn).size).toBe(drawn.length)
  })

  it(
    'a failure is shrunk to one that breaks the same promise and asks for less',
    async () => {
      const { canaryNamed } = await import('./canaries.ts')
      const { mutation } = canaryNamed('barrier-skipped')
      const tally = await simulateBatch({
        from: 0,
        seeds: 200,
        canary: 'barrier-skipped',
        twice: false,
        stopsAtFirst: true,
      })
      const scenario = drawScenario(tally.failures[0]?.seed ?? -1)
      const outcome = await simulate(scenario, { mutation })
      const shrunk = await shrink(scenario, outcome, mutation)
      expect(shrunk.outcome.violations[0]?.name).toBe(outcome.violations[0]?.name)
      expect(shrunk.scenario.operations.length).toBeLessThanOrEqual(2)
    },
    patienceMs,
  )
})
