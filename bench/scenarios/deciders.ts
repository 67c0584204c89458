// Deciders: inputs of one instance that many callers want, from one process and from four; inputs of ten thousand instances; and
// how long one input takes where an instance has few events, and where it has many. Beside it, what one commit of a bare
// connection takes: an input needs one.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { timed, withBareCommits } from '../bare-commits.ts'
import { counter, executeAll } from '../counter.ts'
import type { DeciderTask } from '../decider-child.ts'
import { quantile } from '../numbers.ts'
import { withHoldfast, type Case, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { storeKindOf, withPostgresStore, withSqliteFile } from '../stores.ts'

const callers = 64
const processes = 4
const instances = 10_000
const bareCommits = 300

const child = fileURLToPath(new URL('../decider-child.js', import.meta.url))

export const deciders: Scenario = {
  name: 'deciders',
  about: 'inputs of deciders: one hot instance from 1 and 4 processes, 10,000 instances, and one input at a time',
  cases(settings) {
    const several: Case = { name: `hot, ${processes} processes`, isolated: true, sample: () => fromSeveral(settings) }
    return [
      { name: 'hot, 1 process', sample: () => fromOne(settings) },
      ...(storeKindOf(settings.store) === 'memory' ? [] : [several]),
      { name: `${instances.toLocaleString('en-US')} instances`, sample: () => spread(settings) },
      ...[10, settings.quick ? 10_000 : 100_000].map((events): Case => ({
        name: `one at a time, ${events.toLocaleString('en-US')} events`,
        isolated: true,
        samples: 1,
        sample: () => oneByOne(settings, events),
      })),
    ]
  },
}

function rate(inputs: number, ms: number): Reading {
  return { metric: 'inputs', unit: 'inputs/s', value: (inputs / ms) * 1_000 }
}

async function fromOne({ store, quick }: Settings): Promise<readonly Reading[]> {
  const inputs = quick ? 5_000 : 20_000
  return withHoldfast(store, [counter], async (holdfast) => {
    const began = performance.now()
    await executeAll(holdfast, { inputs, callers, idOf: () => 'hot' })
    return [rate(inputs, performance.now() - began)]
  })
}

async function fromSeveral(settings: Settings): Promise<readonly Reading[]> {
  const { store } = settings
  if (storeKindOf(store) === 'sqlite') return withSqliteFile(store, (path) => race(`sqlite:${path}`, settings))
  return withPostgresStore(store, (_opened, schema) => {
    const address = new URL(store)
    address.searchParams.set('schema', schema)
    return race(address.href, settings)
  })
}

async function race(store: string, { quick }: Settings): Promise<readonly Reading[]> {
  const task: DeciderTask = { store, inputs: quick ? 1_000 : 4_000, callers: callers / processes }
  const hands = []
  for (let nth = 0; nth < processes; nth += 1) {
    const hand = fork(child)
    hand.send(task)
    await once(hand, 'message')
    hands.push(hand)
  }
  const began = performance.now()
  const over = hands.map((hand) => once(hand, 'message'))
  for (const hand of hands) hand.send('go')
  await Promise.all(over)
  return [rate(processes * task.inputs, performance.now() - began)]
}

async function spread({ store, quick }: Settings): Promise<readonly Reading[]> {
  const inputs = quick ? instances : 3 * instances
  return withHoldfast(store, [counter], async (holdfast) => {
    const began = performance.now()
    await executeAll(holdfast, { inputs, callers: 500, idOf: (nth) => `${nth % instances}` })
    return [rate(inputs, performance.now() - began)]
  })
}

async function oneByOne(settings: Settings, events: number): Promise<readonly Reading[]> {
  const measure = (): Promise<readonly Reading[]> =>
    withHoldfast(settings.store, [counter], async (holdfast) => {
      await executeAll(holdfast, { inputs: events, callers: 200, idOf: () => 'long' })
      const execute = (): Promise<unknown> => holdfast.execute(counter, { type: 'Count', id: 'long' })
      const times = await timed(settings.quick ? 300 : 1_000, execute)
      return [
        { metric: 'p50', unit: 'µs', value: quantile(times, 0.5) },
        { metric: 'p99', unit: 'µs', value: quantile(times, 0.99) },
      ]
    })
  if (storeKindOf(settings.store) !== 'postgres') return measure()
  return withBareCommits(settings.store, async (commits) => {
    const before = await commits(bareCommits)
    const readings = await measure()
    const bare = quantile([...before, ...(await commits(bareCommits))], 0.5)
    const share = (readings[0]?.value ?? Number.NaN) / bare
    return [
      ...readings,
      { metric: 'bare commit, p50', unit: 'µs', value: bare },
      { metric: 'p50 / bare commit', unit: '×', value: share, better: 'lower' },
    ]
  })
}
