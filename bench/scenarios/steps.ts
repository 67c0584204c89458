// One long run: many steps one after another. A step must not cost more because many came before it.

import { workflow, type Holdfast } from 'holdfast'
import { median } from '../numbers.ts'
import { withHoldfast, type Reading, type Scenario } from '../scenario.ts'

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
      sample: () => withHoldfast(store, [longRun], (holdfast) => measure(holdfast, length)),
    })),
}

const notMore = { is: 'at most', value: 1.2 } as const

async function measure(holdfast: Holdfast, length: number): Promise<readonly Reading[]> {
  await holdfast.work()
  const began = performance.now()
  const run = await holdfast.start(longRun, length)
  await run.result()
  const seconds = (performance.now() - began) / 1_000
  const early = median(times.slice(4, 50))
  const late = median(times.slice(-500))
  return [
    { metric: 'throughput', unit: 'steps/s', value: length / seconds },
    { metric: 'steps 5 to 50', unit: 'µs', value: early },
    { metric: 'last 500 steps', unit: 'µs', value: late },
    { metric: 'late / early', unit: '×', value: late / early, goals: { memory: notMore, sqlite: notMore } },
  ]
}
