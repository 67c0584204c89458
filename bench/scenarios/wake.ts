// How fast waiting runs go on: all at once by a signal each, by one broadcast, or by one point in time, measured from what
// wakes them to the moment when the code of the last one goes on; and one alone, from its signal to its code. The runs were
// parked by the same worker, with their frames kept in memory or dropped, in which case each is replayed.

import { topic, workflow, type Holdfast } from 'holdfast'
import { quantile } from '../numbers.ts'
import { withHoldfast, type Case, type Goals, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { storeKindOf } from '../stores.ts'

const go = topic<number>('bench.go')

/** Called by every run as soon as it goes on. */
let onResumed: () => void = () => undefined

const bySignal = workflow('bench.wait-signal', async (ctx, _order: number) => {
  await ctx.receive('go')
  onResumed()
})
const byTopic = workflow('bench.wait-topic', async (ctx, _order: number) => {
  await ctx.receive(go)
  onResumed()
})
const byTime = workflow('bench.wait-time', async (ctx, at: number) => {
  await ctx.sleepUntil(at)
  onResumed()
})
const workflows = [bySignal, byTopic, byTime]

const goals: Goals = { sqlite: { is: 'at least', value: 4_000 }, postgres: { is: 'at least', value: 4_000 } }

export const wake: Scenario = {
  name: 'wake',
  about: 'waiting runs that go on: by signals, by a broadcast, by time',
  cases: (settings) => [
    wakeCase(settings, 'a signal each', true, bySignalEach),
    wakeCase(settings, 'a signal each, replayed', false, bySignalEach),
    wakeCase(settings, 'one broadcast', true, byOneBroadcast),
    wakeCase(settings, 'one point in time', true, byOneTime),
    { name: 'one alone', sample: () => withHoldfast(settings.store, workflows, (one) => latency(one, settings)) },
  ],
}

type Wake = (holdfast: Holdfast, runs: number) => Promise<number>

function wakeCase({ store, quick }: Settings, name: string, kept: boolean, measure: Wake): Case {
  const runs = quick ? 2_000 : 10_000
  return {
    name: `${runs.toLocaleString('en-US')} by ${name}`,
    isolated: true,
    sample: () =>
      withHoldfast(store, workflows, async (holdfast) => {
        await holdfast.work({ concurrency: 1_000, cachedRuns: kept ? runs : 0 })
        const ms = await measure(holdfast, runs)
        return [{ metric: 'wakes', unit: 'per second', value: (runs / ms) * 1_000, goals }]
      }),
  }
}

async function bySignalEach(holdfast: Holdfast, runs: number): Promise<number> {
  const ids = await startAll(holdfast, runs, (order) => holdfast.start(bySignal, order))
  const resumed = allResumed(runs)
  const began = performance.now()
  await Promise.all(ids.map((id) => holdfast.signal(id, 'go')))
  await resumed
  return performance.now() - began
}

async function byOneBroadcast(holdfast: Holdfast, runs: number): Promise<number> {
  await startAll(holdfast, runs, (order) => holdfast.start(byTopic, order))
  const resumed = allResumed(runs)
  const began = performance.now()
  await holdfast.broadcast(go, 1)
  await resumed
  return performance.now() - began
}

async function byOneTime(holdfast: Holdfast, runs: number): Promise<number> {
  // Late enough for all of them to be parked before.
  const at = Date.now() + runs * 2 + 1_000
  const resumed = allResumed(runs)
  await startAll(holdfast, runs, () => holdfast.start(byTime, at))
  if (Date.now() > at) throw new Error('The runs took longer to be parked than they were to sleep.')
  await resumed
  return Date.now() - at
}

/** From a signal to the code behind the wait, of one run after the other. */
async function latency(holdfast: Holdfast, { quick, store }: Settings): Promise<readonly Reading[]> {
  await holdfast.work({ concurrency: 10 })
  const runs = Math.round((quick ? 500 : 3_000) / (storeKindOf(store) === 'memory' ? 1 : 3))
  const ids = await startAll(holdfast, runs, (order) => holdfast.start(bySignal, order))
  const times: number[] = []
  for (const id of ids) {
    const resumed = allResumed(1)
    const began = performance.now()
    const [, at] = await Promise.all([holdfast.signal(id, 'go'), resumed])
    times.push((at - began) * 1_000)
  }
  return [
    { metric: 'p50', unit: 'µs', value: quantile(times, 0.5) },
    { metric: 'p99', unit: 'µs', value: quantile(times, 0.99) },
  ]
}

/** Settles when so many runs have gone on, with the time of the last. */
function allResumed(runs: number): Promise<number> {
  let left = runs
  return new Promise((resolve) => {
    onResumed = () => {
      left -= 1
      if (left === 0) resolve(performance.now())
    }
  })
}

/** Starts so many runs and waits until each of them is parked. */
async function startAll(
  holdfast: Holdfast,
  runs: number,
  start: (order: number) => Promise<{ readonly id: string }>,
): Promise<readonly string[]> {
  const ids: string[] = []
  while (ids.length < runs) {
    const size = Math.min(1_000, runs - ids.length)
    const batch = await Promise.all(Array.from({ length: size }, (_, order) => start(order)))
    for (const { id } of batch) ids.push(id)
  }
  const isParked = async (id: string): Promise<void> => {
    while ((await holdfast.run(id).status()) !== 'waiting') await new Promise((resolve) => setTimeout(resolve, 5))
  }
  for (let first = 0; first < runs; first += 100) await Promise.all(ids.slice(first, first + 100).map(isParked))
  return ids
}
