// A run with a long journal comes back: its frame was dropped when it went to sleep, so the body is run again against
// what it recorded. Timed from the body's first line to where it had left off; reading the journal comes before that.

import { workflow, type Holdfast } from 'holdfast'
import { withHoldfast, type Reading, type Scenario } from '../scenario.ts'

const steps = 5_000

let calls = 0
let replayMs = 0

const sleeper = workflow('bench.replayed', async (ctx) => {
  calls += 1
  const began = performance.now()
  for (let count = 0; count < steps; count += 1) await ctx.step('work', async () => count)
  await ctx.sleep(50)
  replayMs = performance.now() - began
})

export const replay: Scenario = {
  name: 'replay',
  about: `a run of ${steps.toLocaleString('en-US')} steps, woken after its frame was dropped`,
  cases: ({ store }) => [{ name: '', sample: () => withHoldfast(store, [sleeper], (holdfast) => measure(holdfast)) }],
}

async function measure(holdfast: Holdfast): Promise<readonly Reading[]> {
  calls = 0
  await holdfast.work({ cachedRuns: 0 })
  const run = await holdfast.start(sleeper)
  await run.result()
  if (calls !== 2) throw new Error(`The run was to be replayed once, but its body was called ${calls} times.`)
  return [
    { metric: 'throughput', unit: 'entries/s', value: (steps / replayMs) * 1_000 },
    { metric: 'time', unit: 'ms', value: replayMs },
  ]
}
