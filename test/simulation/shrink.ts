// Makes the story of a failure short: takes parts of a scenario away as long as the same promise is still broken. First the
// chaos is cut, then whole classes of faults go, then runs, blows and operations.

import { faultKinds, type Scenario, type Swarm } from './scenario.ts'
import { simulate, type Mutation, type Outcome } from './simulate.ts'

export interface Shrunk {
  readonly scenario: Scenario
  readonly outcome: Outcome
  readonly tries: number
}

const mostTries = 300

export async function shrink(scenario: Scenario, outcome: Outcome, mutation?: Mutation): Promise<Shrunk> {
  const name = outcome.violations[0]?.name
  let best = { scenario, outcome }
  let tries = 0
  const attempt = async (candidate: Scenario): Promise<boolean> => {
    if (tries >= mostTries) return false
    tries += 1
    const tried = await simulate(candidate, { mutation })
    if (tried.violations[0]?.name !== name) return false
    best = { scenario: candidate, outcome: tried }
    return true
  }
  for (let before = -1; before !== tries && tries < mostTries;) {
    before = tries
    let hasShrunk = false
    for (const candidate of smaller(best.scenario)) {
      if (await attempt(candidate)) {
        hasShrunk = true
        break
      }
    }
    if (!hasShrunk) break
  }
  return { ...best, tries }
}

/** Scenarios with one part less, the greatest part first. */
function* smaller(scenario: Scenario): Generator<Scenario> {
  const { chaosMs, swarm, blows, strangers, operations, programs } = scenario
  if (scenario.isolation !== 'serial') yield { ...scenario, isolation: 'serial' }
  for (const part of [0.25, 0.5, 0.75]) if (chaosMs > 100) yield cut(scenario, chaosMs * part)
  for (const calmer of calmerSwarms(swarm)) yield { ...scenario, swarm: calmer }
  for (let index = 0; index < programs.length; index += 1) {
    if (operations.some(({ program }) => program === index)) {
      yield { ...scenario, operations: operations.filter(({ program }) => program !== index) }
    }
  }
  if (strangers.length > 1) yield { ...scenario, strangers: [] }
  for (let index = 0; index < strangers.length; index += 1) {
    yield { ...scenario, strangers: strangers.toSpliced(index, 1) }
  }
  if (blows.length > 1) yield { ...scenario, blows: [] }
  for (let index = 0; index < blows.length; index += 1) yield { ...scenario, blows: blows.toSpliced(index, 1) }
  for (let index = 0; index < operations.length; index += 1) {
    yield { ...scenario, operations: operations.toSpliced(index, 1) }
  }
  for (let index = 0; index < programs.length; index += 1) {
    const program = programs[index]
    if (program === undefined) continue
    if (!program.isChild && !operations.some((operation) => operation.program === index)) continue
    if (program.again > 0) yield { ...scenario, programs: programs.with(index, { ...program, again: 0 }) }
    for (let node = 0; program.nodes.length > 1 && node < program.nodes.length; node += 1) {
      yield { ...scenario, programs: programs.with(index, { ...program, nodes: program.nodes.toSpliced(node, 1) }) }
    }
  }
}

function cut(scenario: Scenario, chaosMs: number): Scenario {
  const isKept = ({ at }: { readonly at: number }): boolean => at <= chaosMs
  return {
    ...scenario,
    chaosMs,
    blows: scenario.blows.filter(isKept),
    strangers: scenario.strangers.filter(isKept),
    operations: scenario.operations.filter(isKept),
  }
}

function* calmerSwarms(swarm: Swarm): Generator<Swarm> {
  for (const kind of faultKinds) {
    if (swarm.faults[kind] > 0) yield { ...swarm, faults: { ...swarm.faults, [kind]: 0 } }
  }
  const none = { shape: 'none', offsetMs: 0, stepMs: 0, stepAtMs: 0, rate: 1, swingMs: 0, swingEveryMs: 1_000 } as const
  if (swarm.skews.some(({ shape }) => shape !== 'none')) yield { ...swarm, skews: swarm.skews.map(() => none) }
  if (swarm.batch !== null) yield { ...swarm, batch: null }
  if (swarm.latencyMs > 2) yield { ...swarm, latencyMs: 2 }
  if (swarm.workers > 1) yield { ...swarm, workers: swarm.workers - 1 }
}
