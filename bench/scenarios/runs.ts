// Whole runs, from `start` to `result()`: three steps each, so many at once. As soon as one ends the next begins.

import { workflow, type Holdfast } from 'holdfast'
import type { Goal, Reading, Scenario } from '../scenario.ts'
import { withHoldfast } from '../scenario.ts'

const threeSteps = workflow('bench.three-steps', async (ctx, order: number) => {
  const price = await ctx.step('price', async () => order + 99)
  const paid = await ctx.step('charge', async () => price > 0)
  return ctx.step('ship', async () => ({ parcel: order, paid }))
})

/** How many runs a sample takes: enough for a second or so. */
const levels = [
  { atOnce: 1, runs: 6_000 },
  { atOnce: 10, runs: 15_000 },
  { atOnce: 100, runs: 60_000 },
  { atOnce: 1_000, runs: 60_000 },
]

export const runs: Scenario = {
  name: 'runs',
  about: 'runs of three steps, start to result, so many at once',
  cases: ({ store, quick }) =>
    levels.map((level) => ({
      name: `${level.atOnce.toLocaleString('en-US')} at once`,
      sample: () =>
        withHoldfast(store, [threeSteps], (holdfast) =>
          measure(holdfast, level.atOnce, quick ? level.runs / 3 : level.runs),
        ),
    })),
}

async function measure(holdfast: Holdfast, atOnce: number, runs: number): Promise<readonly Reading[]> {
  await holdfast.work({ concurrency: Math.max(100, atOnce) })
  let left = runs
  const customer = async (): Promise<void> => {
    for (; left > 0;) {
      left -= 1
      const run = await holdfast.start(threeSteps, left)
      await run.result()
    }
  }
  const cpu = process.cpuUsage()
  const began = performance.now()
  await Promise.all(Array.from({ length: atOnce }, customer))
  const ms = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)

  const goals: Record<'throughput' | 'time', { readonly goal?: Goal }> =
    atOnce === 1_000
      ? { throughput: { goal: { is: 'at least', value: 40_000 } }, time: { goal: { is: 'at most', value: 25 } } }
      : { throughput: {}, time: {} }
  return [
    { metric: 'throughput', unit: 'runs/s', value: (runs / ms) * 1_000, ...goals.throughput },
    { metric: 'time per run', unit: 'µs', value: (ms / runs) * 1_000, ...goals.time },
    { metric: 'CPU per run', unit: 'µs', value: (user + system) / runs },
  ]
}
