// Many seeds, each twice: the second time must be the same as the first.

import { canaryNamed } from './canaries.ts'
import { drawScenario } from './nemesis.ts'
import type { FaultKind, Isolation } from './scenario.ts'
import { simulate, type Outcome } from './simulate.ts'
import type { Violation } from '../../src/testing/invariants/index.ts'

export interface Failure {
  readonly seed: number
  readonly violations: readonly Violation[]
}

/** What many simulations came to; such tallies can be added. */
export interface Tally {
  seeds: number
  virtualMs: number
  events: number
  storeCalls: number
  runs: number
  effects: number
  faults: Record<FaultKind, number>
  crashes: number
  restarts: number
  standstills: number
  /** How many seeds had each of these. */
  matrix: Record<'parked 0' | 'one slot' | 'batch 1' | 'one worker' | 'skewed' | 'no hints' | Isolation, number>
  failures: Failure[]
}

export function emptyTally(): Tally {
  return {
    seeds: 0,
    virtualMs: 0,
    events: 0,
    storeCalls: 0,
    runs: 0,
    effects: 0,
    faults: { before: 0, after: 0, slow: 0, lost: 0 },
    crashes: 0,
    restarts: 0,
    standstills: 0,
    matrix: {
      'parked 0': 0,
      'one slot': 0,
      'batch 1': 0,
      'one worker': 0,
      skewed: 0,
      'no hints': 0,
      serial: 0,
      'read committed': 0,
    },
    failures: [],
  }
}

export interface BatchOptions {
  readonly from: number
  readonly seeds: number
  /** Only every so many-th seed, so that several may share the work. */
  readonly stride?: number
  readonly canary?: string | undefined
  /** Each seed is simulated again, to see that it is the same. */
  readonly twice: boolean
  /** Stops at the first failure. */
  readonly stopsAtFirst?: boolean
  readonly onSeed?: (tally: Tally) => void
}

export async function simulateBatch(options: BatchOptions): Promise<Tally> {
  const { from, seeds, stride = 1, canary, twice, stopsAtFirst = false, onSeed } = options
  const mutation = canary === undefined ? undefined : canaryNamed(canary).mutation
  const tally = emptyTally()
  for (let seed = from; seed < from + seeds; seed += stride) {
    const scenario = drawScenario(seed)
    const outcome = await simulate(scenario, { mutation })
    const violations = [...outcome.violations]
    if (twice && violations.length === 0) {
      const again = await simulate(scenario, { mutation })
      if (again.hash !== outcome.hash) {
        const message = `${outcome.hash} with ${outcome.events} events, then ${again.hash} with ${again.events}`
        violations.push({ name: 'same_seed_same_trace', runId: null, message: message })
      }
    }
    count(tally, outcome)
    const { swarm } = scenario
    const { matrix } = tally
    matrix[outcome.isolation] += 1
    if (swarm.parked === 0) matrix['parked 0'] += 1
    if (swarm.slots === 1) matrix['one slot'] += 1
    if (swarm.batch === 1) matrix['batch 1'] += 1
    if (swarm.workers === 1) matrix['one worker'] += 1
    if (!swarm.hints.sent) matrix['no hints'] += 1
    if (swarm.skews.some(({ shape }) => shape !== 'none')) matrix.skewed += 1
    if (violations.length > 0) tally.failures.push({ seed, violations })
    onSeed?.(tally)
    if (stopsAtFirst && violations.length > 0) break
  }
  return tally
}

function count(tally: Tally, outcome: Outcome): void {
  tally.seeds += 1
  tally.virtualMs += outcome.virtualMs
  tally.events += outcome.events
  tally.storeCalls += outcome.storeCalls
  tally.runs += outcome.runs
  tally.effects += outcome.effects
  tally.crashes += outcome.crashes
  tally.restarts += outcome.restarts
  tally.standstills += outcome.standstills
  for (const [kind, number] of Object.entries(outcome.faults)) tally.faults[kind as FaultKind] += number
}

export function add(sum: Tally, part: Tally): void {
  sum.seeds += part.seeds
  sum.virtualMs += part.virtualMs
  sum.events += part.events
  sum.storeCalls += part.storeCalls
  sum.runs += part.runs
  sum.effects += part.effects
  sum.crashes += part.crashes
  sum.restarts += part.restarts
  sum.standstills += part.standstills
  for (const kind of Object.keys(sum.faults) as FaultKind[]) sum.faults[kind] += part.faults[kind]
  for (const kind of Object.keys(sum.matrix) as (keyof Tally['matrix'])[]) sum.matrix[kind] += part.matrix[kind]
  sum.failures.push(...part.failures)
}
