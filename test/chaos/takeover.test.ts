// Who takes over must neither lose a run nor blame it for the death of another.

import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WorkerProcesses } from './worker-processes.ts'
import { until } from '../support/until.ts'
import { pidOf } from './step-log.ts'

let processes: WorkerProcesses

beforeEach(async () => {
  processes = await WorkerProcesses.gather()
})
afterEach(() => processes.dismiss())

const timeout = 60_000

describe('a worker that stood still while nobody was there to take over', { timeout }, () => {
  it('SW-E5 does not sit on its runs: they go on', async () => {
    const worker = await processes.hired({ lease: '500ms' })
    const run = await processes.client.start(processes.programs.two, { ms: 300 })
    await processes.begun(run, 'first')
    worker.signal('SIGSTOP')
    await setTimeout(1_200)
    worker.signal('SIGCONT')
    expect(pidOf(await run.result({ timeout: '10s' }))).toBe(worker.pid)
    const journal = await processes.client.journal(run)
    expect(journal.filter(({ kind }) => kind === 'step-succeeded')).toHaveLength(2)
  })
})

describe('runs beside one that ends its process', { timeout }, () => {
  it('SW-R5 are not given up with it, though they were claimed with it each time and never had their turn', async () => {
    const work = { lease: '500ms', concurrency: 20 } as const
    // It is first in every claim, and kills before any of the others has recorded anything.
    const bad = await processes.client.start(processes.programs.poison, undefined, { priority: 1 })
    const others = await Promise.all(
      Array.from({ length: 4 }, () => processes.client.start(processes.programs.two, { ms: 250 })),
    )
    let only = processes.hire(work)
    await until(
      'every run has ended',
      async () => {
        if (only.exit !== null) only = processes.hire(work)
        const runs = await Promise.all([bad, ...others].map((run) => processes.client.get(run)))
        return runs.every(({ endedAt, status }) => endedAt !== null || status === 'paused')
      },
      40_000,
    )
    expect(await Promise.all(others.map((run) => run.status()))).toEqual(others.map(() => 'succeeded'))
    expect(await bad.status()).toBe('paused')
  })
})

describe('the runs of a killed worker', { timeout }, () => {
  it('IF-C3 PQ-E4 go on together at the step that was cut off, and finished steps are not repeated', async () => {
    const victim = await processes.hired({ lease: '500ms' })
    const runs = await Promise.all(
      Array.from({ length: 8 }, () => processes.client.start(processes.programs.two, { ms: 1_500 })),
    )
    for (const run of runs) await processes.begun(run, 'second', victim.pid)
    victim.signal('SIGKILL')
    await victim.exited
    await setTimeout(600)
    const heir = processes.hire({ lease: '500ms' })
    expect((await heir.ready).runs).toBe(8)
    await Promise.all(runs.map((run) => run.result({ timeout: '20s' })))
    const after = processes.executions.filter(({ pid }) => pid === heir.pid)
    expect(after.map(({ step }) => step)).toEqual(runs.map(() => 'second'))
    // Side by side and not one after the other: the last had begun before the first ended.
    const firstEnd = Math.min(...after.map(({ ended }) => ended ?? Infinity))
    expect(Math.max(...after.map(({ began }) => began))).toBeLessThan(firstEnd)
  })
})
