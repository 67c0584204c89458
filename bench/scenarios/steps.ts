// One long run: many steps one after another. A step must not cost more because many came before it. On Postgres it is
// also compared with commits of one row on a bare connection, half of them made right before the run and half right after.

import { workflow, type Holdfast } from 'holdfast'
import { withBareCommits } from '../bare-commits.ts'
import { median } from '../numbers.ts'
import { withHoldfast, type Reading, type Scenario } from '../scenario.ts'
import { storeKindOf } from '../stores.ts'
import { countWrites, readingsOfWrites } from '../writes.ts'

/** How long each step of the last run took, in µs. Never replayed here, so the body may write to it. */
let times: number[] = []

const longRun = workflow('bench.long-run', async (ctx, steps: number) => {
  times = []
  for (let count = 0; count < steps; count += 1) {
    const began = performance.now()
    await ctx.step('work', async () => count)
    times.push((performance.now() - began) * 1_000)
  }
})

export const steps: Scenario = {
  name: 'steps',
  about: 'sequential steps of one run, and whether late ones cost more than early ones',
  cases: ({ store }) =>
    [1_000, 10_000].map((length) => ({
      name: `${length.toLocaleString('en-US')} steps`,
      sample: () => (storeKindOf(store) === 'postgres' ? measureBesideBare(store, length) : measure(store, length)),
    })),
}

const notMore = { is: 'at most', value: 1.2 } as const
const notMoreAnywhere = { memory: notMore, sqlite: notMore, postgres: notMore }

/** How many bare commits on each side of the run. */
const bareCommits = 500

async function measureBesideBare(store: string, length: number): Promise<readonly Reading[]> {
  return withBareCommits(store, async (commits) => {
    const before = await commits(bareCommits)
    const readings = await measure(store, length)
    const after = await commits(bareCommits)
    const micros = [...before, ...after].reduce((sum, time) => sum + time, 0)
    const bare = ((2 * bareCommits) / micros) * 1_000_000
    const share = (100 * (readings[0]?.value ?? Number.NaN)) / bare
    return [
      ...readings,
      { metric: 'bare commits', unit: 'commits/s', value: bare },
      {
        metric: 'steps / bare commits',
        unit: '%',
        value: share,
        goals: { postgres: { is: 'at least', value: 70 } },
        better: 'higher',
      },
    ]
  })
}

function measure(store: string, length: number): Promise<readonly Reading[]> {
  return withHoldfast(store, [longRun], (holdfast) => perform(holdfast, store, length))
}

async function perform(holdfast: Holdfast, store: string, length: number): Promise<readonly Reading[]> {
  await holdfast.work()
  const { answer: seconds, writes } = await countWrites(store, async () => {
    const began = performance.now()
    const run = await holdfast.start(longRun, length)
    await run.result()
    return (performance.now() - began) / 1_000
  })
  const early = median(times.slice(4, 50))
  const late = median(times.slice(-500))
  return [
    { metric: 'throughput', unit: 'steps/s', value: length / seconds },
    { metric: 'steps 5 to 50', unit: 'µs', value: early },
    { metric: 'last 500 steps', unit: 'µs', value: late },
    { metric: 'late / early', unit: '×', value: late / early, goals: notMoreAnywhere, better: 'lower' },
    ...readingsOfWrites(writes, length, { per: 'step' }),
  ]
}
