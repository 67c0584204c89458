// Shows the bodies of a trial their journals again, several times, each under another clock and with another chance of the
// machine: whatever a body does differently, it would have done differently after a crash.

import type { Definition } from '../../core/definition.ts'
import type { Turns } from '../../core/ports.ts'
import type { Run } from '../../core/run.ts'
import { replayRun, type Replayed } from '../../engine/replaying.ts'
import { systemPorts } from '../../system.ts'
import { silentLogger } from '../logger.ts'
import { createSeededRandom } from '../seeded-random.ts'
import { createVirtualClock } from '../virtual-clock.ts'
import { withOtherAmbient, type AmbientRead } from './ambient.ts'
import { journalOf } from './waiting.ts'
import type { World } from './world.ts'

/** A body that does not go the way of its journal. */
export interface ReplayFinding {
  readonly run: Run
  readonly replayed: Exclude<Replayed, { outcome: 'same' }>
  /** Where the body looked at the clock and the chance of the machine. */
  readonly reads: readonly AmbientRead[]
}

export interface ReplayOptions {
  readonly definitions: readonly Definition[]
  readonly services: unknown
  readonly times: number
}

/** How long a body that awaits something real is waited for before time passes: whoever replays cannot see what it awaits. */
const graceMs = 50

/** The first of the runs whose body goes another way; null if all of them keep to their journals. */
export async function replayAll(
  world: World,
  runs: readonly Run[],
  { definitions, services, times }: ReplayOptions,
): Promise<ReplayFinding | null> {
  for (const run of runs) {
    const definition = definitions.find(({ type, version }) => type === run.type && version === run.version)
    if (definition === undefined) continue
    const reads: AmbientRead[] = []
    for (let number = 0; number < times; number += 1) {
      const replayed = await withOtherAmbient(number, reads, () => replay(world, definition, run, services))
      if (replayed.outcome !== 'same') return { run, replayed, reads }
    }
  }
  return null
}

async function replay(world: World, definition: Definition, run: Run, services: unknown): Promise<Replayed> {
  const entries = await journalOf(world.store, run)
  let answer: Replayed | null = null
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
  const ports = { ...machine, clock, turns, random: createSeededRandom(run.seq) }
  const { payloads, tokenKey } = world
  const replaying = replayRun(definition, run, entries, { ports, payloads, services, tokenKey })
  void replaying.then((replayed) => (answer = replayed))
  await clock.runUntil(() => answer !== null, '10 min')
  return replaying
}
