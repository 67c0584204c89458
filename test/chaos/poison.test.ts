// Two runs that end their process among many that do not: the healthy go on, and the two are found and paused.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunHandle } from '../../src/index.ts'
import { WorkerProcesses } from './worker-processes.ts'
import { until } from '../support/until.ts'

/** So many deaths make a run a suspect. Those that follow, it dies in isolation. */
const deathsAmongOthers = 2

let processes: WorkerProcesses

beforeEach(async () => {
  processes = await WorkerProcesses.gather()
})
afterEach(() => processes.dismiss())

/** When so many of its processes in a row had been found dead, in store time. */
async function diedAt(run: { readonly id: string }, times: number): Promise<number | undefined> {
  const journal = await processes.client.journal(run.id)
  const isIt = (entry: (typeof journal)[number]): boolean => entry.kind === 'crashed' && entry.meta.crashes === times
  return journal.find(isIt)?.at.getTime()
}

describe('two poisonous runs among eighty', { timeout: 260_000 }, () => {
  // Seen: 58 healthy ones took 110 s, because everything waited while a suspect had its turn. A process that has just begun does
  // other work first, and three processes begin before one of the two dies in isolation for the second time.
  it('SW-R5 are paused for their crashes, and a run that comes when they are suspects waits for neither', async () => {
    const work = { lease: '500ms', concurrency: 10 } as const
    const { two, poison } = processes.programs
    const start = (count: number): Promise<RunHandle<string>[]> =>
      Promise.all(Array.from({ length: count }, () => processes.client.start(two, { ms: 100 })))
    const bad = [await processes.client.start(poison, undefined), await processes.client.start(poison, undefined)]
    const early = await start(58)
    // As a supervisor would: a process that dies is replaced.
    let only = processes.hire(work)
    const untilSo = (what: string, look: () => Promise<boolean>): Promise<boolean> =>
      until(
        what,
        () => {
          if (only.exit !== null) only = processes.hire(work)
          return look()
        },
        120_000,
      )
    await untilSo('both are suspects', async () => {
      const deaths = await Promise.all(bad.map((run) => diedAt(run, deathsAmongOthers)))
      return deaths.every((at) => at !== undefined)
    })
    const late = await start(20)
    await untilSo('every run has ended or is paused', async () => {
      const runs = await Promise.all([...bad, ...early, ...late].map((run) => processes.client.get(run)))
      return runs.every(({ endedAt, status }) => endedAt !== null || status === 'paused')
    })
    const ended = await Promise.all([...early, ...late].map((run) => processes.client.get(run)))
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['succeeded']))
    const lastEnd = Math.max(...ended.map(({ endedAt }) => endedAt?.getTime() ?? Infinity))
    for (const run of bad) {
      const last = (await processes.client.journal(run)).at(-1)
      expect([last?.kind, last?.meta]).toMatchObject(['paused', { reason: 'crashes' }])
      expect(last?.at.getTime()).toBeGreaterThan(lastEnd)
    }
    expect(
      await processes.client.resumeMany({ type: 'chaos.poison' }, { reason: 'crashes', preview: true }),
    ).toMatchObject({
      matched: 2,
    })
  })
})
