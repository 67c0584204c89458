// Replays the journals of a trial against their bodies, several times, each with another clock and other random numbers: a
// body that behaves differently now would have done so after a crash.

import type { Definition } from '../../../core/definition/definition.ts'
import { randomFraction, type Turns } from '../../../core/runtime/ports.ts'
import type { Run } from '../../../core/model/run.ts'
import { loadEntries } from '../../../engine/store/journal-pages.ts'
import { replayRun, type ReplayResult } from '../../../engine/replay/replay-run.ts'
import { systemPorts } from '../../../system.ts'
import { silentLogger } from '../../logger.ts'
import { createSeededRandom } from '../../seeded-random.ts'
import { createVirtualClock } from '../../virtual-clock.ts'
import { holdAmbient, type AmbientScope, type AmbientUse } from '../ambient.ts'
import { bodiesIn } from '../body-watch.ts'
import type { World } from '../world.ts'

/** A body that does not follow its journal. */
export interface ReplayFinding {
  readonly run: Run
  readonly replayed: Exclude<ReplayResult, { outcome: 'same' }>
  /** Where the body read the clock or random numbers of the machine. */
  readonly reads: readonly AmbientUse[]
}

export interface JournalReplayOptions {
  readonly definitions: readonly Definition[]
  readonly services: unknown
  readonly times: number
}

/** How long a body that awaits real work is awaited before time passes: a replay cannot see what it awaits. */
const graceMs = 50

/** The first run whose body takes another path; null if all follow their journals. */
export async function replayAll(
  world: World,
  runs: readonly Run[],
  options: JournalReplayOptions,
): Promise<ReplayFinding | null> {
  const release = holdAmbient()
  try {
    for (const run of runs) {
      const finding = await replayOften(world, run, options)
      if (finding !== null) return finding
    }
    return null
  } finally {
    release()
  }
}

async function replayOften(
  world: World,
  run: Run,
  { definitions, services, times }: JournalReplayOptions,
): Promise<ReplayFinding | null> {
  const definition = definitions.find(({ type, version }) => type === run.type && version === run.version)
  if (definition === undefined) return null
  const reads: AmbientUse[] = []
  for (let number = 0; number < times; number += 1) {
    const ambient = otherAmbient(number, world.clock.now(), reads)
    const replayed = await replay(world, definition, run, { services, ambient })
    if (replayed.outcome !== 'same') return { run, replayed, reads }
  }
  return null
}

/** A day and a bit, so that hours, minutes, weekdays and parities differ. */
const strideMs = 31 * 3_600_000 + 13 * 60_000 + 7_001
const mostReads = 100

/** Another clock and other random numbers than for the previous `number`. Each read is recorded with its place. */
function otherAmbient(number: number, startMs: number, reads: AmbientUse[]): AmbientScope {
  return {
    now: () => startMs + number * strideMs,
    random: chance(number),
    onUse({ what, place }) {
      const isKnown = reads.some((read) => read.what === what && read.place === place)
      if (!isKnown && reads.length < mostReads) reads.push({ what, place })
    },
  }
}

/** The first number is near 0 and near 1 by turns, which is enough for most branches. */
function chance(number: number): () => number {
  const random = createSeededRandom(number)
  let isFirst = true
  return () => {
    const fraction = randomFraction(random)
    const first = number % 2 === 0 ? fraction / 1_000 : 1 - (1 + fraction) / 1_000
    const next = isFirst ? first : fraction
    isFirst = false
    return next
  }
}

/** The surroundings of a body. */
interface Replaying {
  readonly services: unknown
  readonly ambient: AmbientScope
}

async function replay(
  world: World,
  definition: Definition,
  run: Run,
  { services, ambient }: Replaying,
): Promise<ReplayResult> {
  const entries = await loadEntries(world.store, run.id, run.base - 1)
  let answer: ReplayResult | null = null
  let taken = 0
  const silent = async (): Promise<void> => {
    for (let idle = 0; answer === null && idle < graceMs;) {
      const before = taken
      await new Promise((resolve) => (idle === 0 ? setImmediate(resolve) : setTimeout(resolve, 1)))
      idle = taken === before ? idle + 1 : 0
    }
  }
  const clock = createVirtualClock(world.clock.now(), silent)
  const machine = systemPorts(silentLogger)
  const turns: Turns = {
    next(call) {
      taken += 1
      machine.turns.next(call)
    },
  }
  const bodies = bodiesIn(() => ambient)
  const ports = { ...machine, clock, turns, bodies, random: createSeededRandom(run.seq) }
  const { payloads, tokenKey } = world
  const replaying = replayRun(definition, run, entries, { ports, payloads, services, tokenKey })
  void replaying.then((replayed) => (answer = replayed))
  await clock.runUntil(() => answer !== null, '10 min')
  return replaying
}
