// A backlog: runs without steps are started while nobody works, then a worker takes them all. Ends when the worker has
// stopped, so that every last commit is part of the time.

import { workflow, type Holdfast } from 'holdfast'
import { withHoldfast, type Reading, type Scenario } from '../scenario.ts'

const startsAtOnce = 1_000

let performed = 0
let onPerformed: () => void = () => undefined

const noSteps = workflow('bench.no-steps', (_ctx, order: number) => {
  performed += 1
  onPerformed()
  return order
})

export const enqueue: Scenario = {
  name: 'enqueue',
  about: 'runs without steps: enqueued with no worker, then drained by one',
  cases: ({ store, quick }) => [
    {
      name: '',
      sample: () => withHoldfast(store, [noSteps], (holdfast) => measure(holdfast, quick ? 20_000 : 60_000)),
    },
  ],
}

async function measure(holdfast: Holdfast, runs: number): Promise<readonly Reading[]> {
  performed = 0
  const began = performance.now()
  let left = runs
  const customer = async (): Promise<void> => {
    for (; left > 0;) {
      left -= 1
      await holdfast.start(noSteps, left)
    }
  }
  await Promise.all(Array.from({ length: startsAtOnce }, customer))
  const enqueued = performance.now()

  const all = new Promise<void>((resolve) => {
    onPerformed = () => performed === runs && resolve()
  })
  const worker = await holdfast.work({ concurrency: 1_000 })
  await all
  await worker.stop()
  const drained = performance.now()
  return [
    {
      metric: 'enqueue',
      unit: 'runs/s',
      value: (runs / (enqueued - began)) * 1_000,
      goals: { sqlite: { is: 'at least', value: 30_000 } },
    },
    { metric: 'drain', unit: 'runs/s', value: (runs / (drained - enqueued)) * 1_000 },
  ]
}
