// Runs that are claimed, wait, and are claimed again by workers that have a backlog and no frame of them: no recorded step is
// performed again, however they were claimed the first time.

import { expect, it } from 'vitest'
import { createHoldfast, workflow, type Holdfast, type StepTools } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { migratedSchema } from '../support/postgres-shared.ts'

it.each([
  { workers: 1, concurrency: 30, cachedRuns: 0, runs: 120 },
  { workers: 1, concurrency: 10, cachedRuns: 20, runs: 200 },
  { workers: 4, concurrency: 8, cachedRuns: undefined, runs: 400 },
])(
  'a backlog of $runs, workers: $workers of $concurrency slots, cachedRuns: $cachedRuns',
  { timeout: 120_000 },
  async ({ workers, concurrency, cachedRuns, runs }) => {
    const { url, schema } = await migratedSchema()
    const performed = new Map<string, number>()
    const note = ({ idempotencyKey: key }: StepTools): void => void performed.set(key, (performed.get(key) ?? 0) + 1)
    const waits = workflow('waits', async (ctx) => {
      for (const name of ['a', 'b', 'c']) {
        await ctx.step(name, note)
        await ctx.sleep(20)
      }
      await ctx.step('d', note)
    })
    const open = async (): Promise<Holdfast> =>
      createHoldfast({ store: await openPostgresStore({ url, schema }), workflows: [waits] })
    const opened: Holdfast[] = []
    try {
      for (let worker = 0; worker < workers; worker += 1) {
        const holdfast = await open()
        opened.push(holdfast)
        await holdfast.work({ concurrency, ...(cachedRuns === undefined ? {} : { cachedRuns }) })
      }
      // Started elsewhere, so that every run is claimed.
      const starter = await open()
      opened.push(starter)
      const started = await Promise.all(Array.from({ length: runs }, () => starter.start(waits, undefined)))
      await Promise.all(started.map((run) => run.result({ timeout: '60s' })))
      expect([...performed.values()].filter((times) => times > 1)).toEqual([])
      expect(performed.size).toBe(4 * runs)
      expect((await starter.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    } finally {
      await Promise.all(opened.map((holdfast) => holdfast.close()))
    }
  },
)
