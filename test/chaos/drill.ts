// Kills real worker processes at random moments while they perform runs, and starts others in their place. The seed decides
// whom it hits, when, and how long each step takes; the machine decides what they were doing then.

import { setTimeout } from 'node:timers/promises'
import { createSeededRandom } from '../../src/testing/index.ts'
import { Crew, until } from './crew.ts'
import { inspect, type Findings } from './inspection.ts'

export interface DrillOptions {
  readonly kills: number
  readonly runs: number
  readonly seed: number
  /** The store's address. @default a SQLite file of its own */
  readonly store?: string
  /** Is told how far it is. */
  readonly onProgress?: (line: string) => void
}

export interface Report extends Findings {
  readonly kills: number
  readonly runs: number
  readonly seconds: number
}

const workers = 3
const steps = ['a', 'b', 'c', 'd', 'e']
const work = { concurrency: 8, lease: '1s' } as const

export async function drill({ kills, runs, seed, store, onProgress = () => undefined }: DrillOptions): Promise<Report> {
  const random = createSeededRandom(seed)
  const below = (bound: number): number => random.uint32() % bound
  const began = Date.now()
  const crew = await Crew.gather(store)
  try {
    const alive = Array.from({ length: workers }, () => crew.hire(work))
    const started: string[] = []
    const goneAt = new Map<number, number>()
    for (let killed = 0; killed < kills;) {
      // Runs come in as time goes on, so that the last kill finds as much work as the first.
      for (const share = Math.ceil(((killed + 1) / kills) * runs); started.length < share;) {
        const input = steps.map(() => 20 + below(300))
        started.push((await crew.client.start(crew.programs.five, input)).id)
      }
      await setTimeout(100 + below(500))
      const index = below(workers)
      const victim = alive[index]
      // Nothing dies in a process that has not begun; in one of eight that is tried, too.
      if (victim === undefined || (!victim.isReady && below(8) > 0)) continue
      goneAt.set(victim.pid, Date.now())
      victim.signal('SIGKILL')
      await victim.exited
      alive[index] = crew.hire(work)
      killed += 1
      onProgress(`${String(killed).padStart(3)} of ${kills} killed, ${started.length} runs started`)
    }
    const views = await until('every run has ended', () => endedRuns(crew, started), 60_000)
    const executions = crew.executions
    const findings = inspect({ runs: views, steps, executions, goneAt })
    for (const hand of alive) hand.signal('SIGTERM')
    await Promise.all(alive.map(({ exited }) => exited))
    return { ...findings, kills, runs: views.length, seconds: (Date.now() - began) / 1000 }
  } finally {
    await crew.dismiss()
  }
}

type Ended = { readonly id: string; readonly status: string; readonly journal: Awaited<ReturnType<typeof journalOf>> }

const journalOf = (crew: Crew, id: string) => crew.client.journal(id)

/** All of them with their journals, or null while one is still under way. */
async function endedRuns(crew: Crew, ids: readonly string[]): Promise<readonly Ended[] | null> {
  const ended: Ended[] = []
  for (const id of ids) {
    const { status, endedAt } = await crew.client.get(id)
    if (endedAt === null) return null
    ended.push({ id, status, journal: await journalOf(crew, id) })
  }
  return ended
}
