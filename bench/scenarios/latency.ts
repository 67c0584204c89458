// How long one run takes when nothing else happens: a step, one run at a time, from `start` to `result()`.

import { workflow, type Holdfast } from 'holdfast'
import { withBareCommits } from '../bare-commits.ts'
import { quantile } from '../numbers.ts'
import { withHoldfast, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { storeKindOf } from '../stores.ts'
import { countWrites, readingsOfWrites } from '../writes.ts'

const oneStep = workflow('bench.one-step', (ctx, order: number) => ctx.step('charge', async () => order))

export const latency: Scenario = {
  name: 'latency',
  about: 'a run of one step, start to result, one at a time',
  cases: (settings) => [
    {
      name: '',
      sample: () => (storeKindOf(settings.store) === 'postgres' ? measureBesideBare(settings) : measureAlone(settings)),
    },
  ],
}

function countOf({ store, quick }: Settings): number {
  return (quick ? 3_000 : 15_000) / (storeKindOf(store) === 'memory' ? 1 : 3)
}

/** How many bare commits on each side. */
const bareCommits = 300

/** On Postgres: beside the bare commits of the same moment, of which a run of one step needs two. */
async function measureBesideBare(settings: Settings): Promise<readonly Reading[]> {
  return withBareCommits(settings.store, async (commits) => {
    const before = await commits(bareCommits)
    const readings = await measureAlone(settings)
    const bare = quantile([...before, ...(await commits(bareCommits))], 0.5)
    const share = (readings[0]?.value ?? Number.NaN) / bare
    return [
      ...readings,
      { metric: 'bare commit, p50', unit: 'µs', value: bare },
      { metric: 'p50 / bare commit', unit: '×', value: share, better: 'lower' },
    ]
  })
}

function measureAlone(settings: Settings): Promise<readonly Reading[]> {
  return withHoldfast(settings.store, [oneStep], (holdfast) => measure(holdfast, settings))
}

async function measure(holdfast: Holdfast, settings: Settings): Promise<readonly Reading[]> {
  await holdfast.work()
  const runs = countOf(settings)
  const { answer: times, writes } = await countWrites(settings.store, () => performOneByOne(holdfast, runs))
  return [
    {
      metric: 'p50',
      unit: 'µs',
      value: quantile(times, 0.5),
      goals: { sqlite: { is: 'at most', value: 1_500 }, postgres: { is: 'at most', value: 2_500 } },
    },
    { metric: 'p99', unit: 'µs', value: quantile(times, 0.99) },
    ...readingsOfWrites(writes, runs, { mostTransactions: 3 }),
  ]
}

/** How long each took, in µs. */
async function performOneByOne(holdfast: Holdfast, runs: number): Promise<readonly number[]> {
  const times: number[] = []
  for (let count = 0; count < runs; count += 1) {
    const began = performance.now()
    const run = await holdfast.start(oneStep, count)
    await run.result()
    times.push((performance.now() - began) * 1_000)
  }
  return times
}
