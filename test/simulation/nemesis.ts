// Draws what goes wrong. Per seed whole classes of faults are on or off: a uniform mix of everything hides what only a pure
// one shows.

import { addCrowds } from './crowds.ts'
import { Draw } from './draw.ts'
import { clients, type Blow, type Scenario, type Skew, type Stranger, type Swarm } from './scenario.ts'
import { addSends } from './sends.ts'
import { addShapes } from './shapes.ts'
import { drawOperations, drawPrograms } from './workload.ts'

export function drawScenario(seed: number): Scenario {
  const swarm = drawSwarm(Draw.of(seed, 'swarm'))
  const programDraw = Draw.of(seed, 'programs')
  const shaped = addShapes(Draw.of(seed, 'shapes'), drawPrograms(programDraw))
  const programs = addSends(Draw.of(seed, 'sends'), addCrowds(Draw.of(seed, 'crowds'), shaped))
  const processes = swarm.workers + clients
  const nemesis = Draw.of(seed, 'nemesis')
  const chaosMs = nemesis.pick([1, 2, 4, 6]) * swarm.leaseMs
  return {
    seed,
    swarm,
    isolation: Draw.of(seed, 'isolation').chance(0.25) ? 'read committed' : 'serial',
    programs,
    operations: drawOperations(Draw.of(seed, 'operations'), programs, processes, chaosMs),
    blows: drawBlows(nemesis, processes, swarm.leaseMs, chaosMs),
    strangers: [
      ...drawStrangers(Draw.of(seed, 'strangers'), swarm.leaseMs, chaosMs),
      ...drawBystanders(Draw.of(seed, 'bystanders'), swarm.leaseMs, chaosMs),
    ],
    chaosMs,
  }
}

function drawSwarm(draw: Draw): Swarm {
  const workers = draw.pick([1, 2, 2, 3, 4])
  const rate = (): number => (draw.chance(0.35) ? draw.pick([0.01, 0.05, 0.15]) : 0)
  const isSkewed = draw.chance(0.4)
  return {
    workers,
    slots: draw.pick([1, 1, 2, 5, 100]),
    parked: draw.pick([0, 0, 1, 100]),
    leaseMs: draw.pick([900, 1_500, 3_000]),
    inlineRetryMs: draw.pick([0, 100, 1_000]),
    latencyMs: draw.pick([0.5, 2, 2, 20, 120]),
    hints: draw.pick([
      { sent: true, lost: 0 },
      { sent: true, lost: 0.3 },
      { sent: true, lost: 1 },
      { sent: false, lost: 1 },
    ]),
    batch: draw.pick([null, null, 1, 2]),
    faults: { before: rate(), after: rate(), slow: rate(), lost: rate() },
    skews: Array.from({ length: workers + clients }, () => drawSkew(draw, isSkewed)),
  }
}

function drawSkew(draw: Draw, isSkewed: boolean): Skew {
  const none: Skew = {
    shape: 'none',
    offsetMs: 0,
    stepAtMs: 0,
    stepMs: 0,
    rate: 1,
    swingMs: 0,
    swingEveryMs: 1_000,
  }
  if (!isSkewed) return none
  const shape = draw.pick(['none', 'offset', 'step', 'drift', 'swing'] as const)
  switch (shape) {
    case 'none':
      return none
    case 'offset':
      return { ...none, shape, offsetMs: draw.int(-3_600_000, 3_600_000) }
    case 'step':
      return { ...none, shape, stepAtMs: draw.int(0, 8_000), stepMs: draw.int(-600_000, 600_000) }
    case 'drift':
      return { ...none, shape, rate: 1 + draw.between(-0.004, 0.004) }
    case 'swing':
      return { ...none, shape, swingMs: draw.int(10, 5_000), swingEveryMs: draw.int(500, 20_000) }
  }
}

function drawBlows(draw: Draw, processes: number, leaseMs: number, chaosMs: number): readonly Blow[] {
  const kinds = [
    ...(draw.chance(0.6) ? (['crash'] as const) : []),
    ...(draw.chance(0.5) ? (['stand-still'] as const) : []),
    ...(draw.chance(0.2) ? (['restart'] as const) : []),
  ]
  if (kinds.length === 0) return []
  const blows: Blow[] = []
  const everyMs = leaseMs * draw.pick([0.3, 1, 2])
  for (let at = draw.between(0, everyMs); at < chaosMs; at += draw.between(0, 2 * everyMs)) {
    const process = draw.int(0, processes - 1)
    const kind = draw.pick(kinds)
    if (kind === 'stand-still') blows.push({ kind, at, process, ms: draw.between(0.1, 3) * leaseMs })
    else blows.push({ kind, at, process, backAfterMs: draw.between(0, 1.5) * leaseMs })
  }
  return blows
}

function drawStrangers(draw: Draw, leaseMs: number, chaosMs: number): readonly Stranger[] {
  if (!draw.chance(0.4)) return []
  const strangers: Stranger[] = []
  const everyMs = leaseMs * draw.pick([0.1, 0.3, 1])
  for (let at = draw.between(0, everyMs); at < chaosMs; at += draw.between(0, 2 * everyMs)) {
    const row = draw.pick(['first', 'first', 'next', draw.fraction()] as const)
    strangers.push({ at, row, ms: draw.between(0.05, 2) * leaseMs })
  }
  return strangers
}

/** Strangers who have the rows of runs that wait for others. */
function drawBystanders(draw: Draw, leaseMs: number, chaosMs: number): readonly Stranger[] {
  if (!draw.chance(0.4)) return []
  const strangers: Stranger[] = []
  const everyMs = leaseMs * draw.pick([0.1, 0.3, 1])
  for (let at = draw.between(0, everyMs); at < chaosMs; at += draw.between(0, 2 * everyMs)) {
    strangers.push({ at, row: { waiting: draw.fraction() }, ms: draw.between(0.05, 2) * leaseMs })
  }
  return strangers
}
