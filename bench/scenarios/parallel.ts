// One run that calls many steps at once. A bound lets so many begin, the rest wait in the order of their calls; what this costs
// is memory, so the peak of the heap is shown beside the time. The results are small: what is measured is the engine's.

import { workflow, type Holdfast } from 'holdfast'
import { withHoldfast, type Reading, type Scenario } from '../scenario.ts'

const steps = 10_000

const fan = workflow('bench.parallel', async (ctx, width: number) => {
  const done = Array.from({ length: width }, (_, index) =>
    ctx.step('work', async () => {
      await new Promise(setImmediate)
      return index
    }),
  )
  return (await Promise.all(done)).length
})

export const parallel: Scenario = {
  name: 'parallel',
  about: `${steps.toLocaleString('en-US')} steps of one run, called at once: time and peak heap`,
  cases: ({ store }) => [
    { name: '', isolated: true, sample: () => withHoldfast(store, [fan], (holdfast) => measure(holdfast)) },
  ],
}

async function measure(holdfast: Holdfast): Promise<readonly Reading[]> {
  if (globalThis.gc === undefined) throw new Error('This scenario needs node --expose-gc.')
  await holdfast.work()
  await (await holdfast.start(fan, 100)).result()
  globalThis.gc()
  const before = process.memoryUsage().heapUsed
  let peak = before
  const look = (): void => void (peak = Math.max(peak, process.memoryUsage().heapUsed))
  const looking = setInterval(look, 1)
  const began = performance.now()
  await (await holdfast.start(fan, steps)).result()
  const ms = performance.now() - began
  look()
  clearInterval(looking)
  return [
    { metric: 'throughput', unit: 'steps/s', value: (steps / ms) * 1_000 },
    { metric: 'peak heap', unit: 'MB', value: peak / 1_000_000 },
    { metric: 'above the start', unit: 'MB', value: (peak - before) / 1_000_000 },
  ]
}
