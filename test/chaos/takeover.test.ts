// Who takes over must neither lose a run nor blame it for the death of another.

import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Crew, until } from './crew.ts'
import { pidOf } from './step-log.ts'

let crew: Crew

beforeEach(async () => {
  crew = await Crew.gather()
})
afterEach(() => crew.dismiss())

const timeout = 60_000

describe('a worker that stood still while nobody was there to take over', { timeout }, () => {
  it('SW-E5 does not sit on its runs: they go on', async () => {
    const hand = await crew.hired({ lease: '500ms' })
    const run = await crew.client.start(crew.programs.two, { ms: 300 })
    await crew.begun(run, 'first')
    hand.signal('SIGSTOP')
    await setTimeout(1_200)
    hand.signal('SIGCONT')
    expect(pidOf(await run.result({ timeout: '10s' }))).toBe(hand.pid)
    const journal = await crew.client.journal(run)
    expect(journal.filter(({ kind }) => kind === 'step-succeeded')).toHaveLength(2)
  })
})

describe('runs beside one that ends its process', { timeout }, () => {
  it('SW-R5 are not given up with it, though they were claimed with it each time and never had their turn', async () => {
    const work = { lease: '500ms', concurrency: 20 } as const
    // It is first in every claim, and kills before any of the others has recorded anything.
    const bad = await crew.client.start(crew.programs.poison, undefined, { priority: 1 })
    const others = await Promise.all(Array.from({ length: 4 }, () => crew.client.start(crew.programs.two, { ms: 250 })))
    let only = crew.hire(work)
    await until(
      'every run has ended',
      async () => {
        if (only.exit !== null) only = crew.hire(work)
        const runs = await Promise.all([bad, ...others].map((run) => crew.client.get(run)))
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
    const victim = await crew.hired({ lease: '500ms' })
    const runs = await Promise.all(Array.from({ length: 8 }, () => crew.client.start(crew.programs.two, { ms: 1_500 })))
    for (const run of runs) await crew.begun(run, 'second', victim.pid)
    victim.signal('SIGKILL')
    await victim.exited
    await setTimeout(600)
    const heir = crew.hire({ lease: '500ms' })
    expect((await heir.ready).runs).toBe(8)
    await Promise.all(runs.map((run) => run.result({ timeout: '20s' })))
    const after = crew.executions.filter(({ pid }) => pid === heir.pid)
    expect(after.map(({ step }) => step)).toEqual(runs.map(() => 'second'))
    // Side by side and not one after the other: the last had begun before the first ended.
    const firstEnd = Math.min(...after.map(({ ended }) => ended ?? Infinity))
    expect(Math.max(...after.map(({ began }) => began))).toBeLessThan(firstEnd)
  })
})
