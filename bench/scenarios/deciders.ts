// Deciders: inputs of one instance that many callers want, from one process and from four; inputs of ten thousand instances; how
// long one input takes where an instance has few events, and where it has many; and what an effect costs. Beside each stands
// what the same takes in bare statements, in the same minute: an input needs one commit at the least.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Holdfast } from 'holdfast'
import { withBareInputs, type BareInputs } from '../bare-inputs.ts'
import { watchBatches } from '../batch-sizes.ts'
import { charges, counter, executeAll } from '../counter.ts'
import type { DeciderTask } from '../decider-child.ts'
import { quantile } from '../numbers.ts'
import { withHoldfast, type Case, type Goals, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { storeKindOf, withPostgresStore, withSqliteFile, withStore } from '../stores.ts'
import { countWrites } from '../writes.ts'

const callers = 64
const processes = 4
const instances = 10_000
const callersOfMany = 500
const bareCommits = 200

/** The history is made of inputs that each have as many events as fit into a transition, about. */
const eventsAtOnce = 400
const history = { short: 10, long: 100_000 }

const child = fileURLToPath(new URL('../decider-child.js', import.meta.url))

export const deciders: Scenario = {
  name: 'deciders',
  about: 'inputs of deciders: one hot instance from 1 and 4 processes, 10,000 instances, one input at a time, effects',
  cases(settings) {
    const several: Case = { name: `hot, ${processes} processes`, isolated: true, sample: () => fromSeveral(settings) }
    return [
      { name: 'hot, 1 process', sample: () => fromOne(settings) },
      ...(storeKindOf(settings.store) === 'memory' ? [] : [several]),
      { name: `${instances.toLocaleString('en-US')} instances`, sample: () => spread(settings) },
      { name: 'one at a time', sample: () => oneByOne(settings) },
      { name: 'effects, one at a time', isolated: true, samples: 1, sample: () => effects(settings) },
    ]
  },
}

/** What inputs and bare statements had in the same time. */
function rates(inputs: number, ms: number, bareMs: number | undefined, goals: Goals): readonly Reading[] {
  const inputsPerSecond = (inputs / ms) * 1_000
  const own: Reading = { metric: 'inputs', unit: 'inputs/s', value: inputsPerSecond, goals }
  if (bareMs === undefined) return [own]
  const bare = (inputs / bareMs) * 1_000
  return [
    own,
    { metric: 'bare statements', unit: 'inputs/s', value: bare },
    { metric: 'inputs / bare', unit: '%', value: (100 * inputsPerSecond) / bare, better: 'higher' },
  ]
}

function atLeast(value: number): Goals {
  return { postgres: { is: 'at least', value }, sqlite: { is: 'at least', value } }
}

function atMost(value: number): Goals {
  return { postgres: { is: 'at most', value }, sqlite: { is: 'at most', value } }
}

async function fromOne({ store, quick }: Settings): Promise<readonly Reading[]> {
  const inputs = quick ? 5_000 : 20_000
  return withBareInputs(store, (bare) =>
    withHoldfast(store, [counter], async (holdfast) => {
      const began = performance.now()
      await executeAll(holdfast, { inputs, callers, idOf: () => 'hot' })
      const ms = performance.now() - began
      return rates(inputs, ms, await bare?.hot(inputs, callers), atLeast(5_000))
    }),
  )
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

async function race(address: string, { store, quick }: Settings): Promise<readonly Reading[]> {
  const task: DeciderTask = { store: address, inputs: quick ? 2_500 : 10_000, callers: callers / processes }
  const hands = []
  for (let nth = 0; nth < processes; nth += 1) {
    const hand = fork(child)
    hand.send(task)
    await once(hand, 'message')
    hands.push(hand)
  }
  const began = performance.now()
  const over = hands.map((hand) => once(hand, 'message') as Promise<[readonly number[]]>)
  for (const hand of hands) hand.send('go')
  const times = (await Promise.all(over)).flatMap(([some]) => some)
  const ms = performance.now() - began
  const inputs = processes * task.inputs
  const bareMs = await withBareInputs(store, async (bare) => bare?.hot(inputs, task.callers))
  return [
    ...rates(inputs, ms, bareMs, atLeast(2_000)),
    { metric: 'p50', unit: 'ms', value: quantile(times, 0.5) },
    { metric: 'p99', unit: 'ms', value: quantile(times, 0.99) },
    { metric: 'longest', unit: 'ms', value: Math.max(...times) },
  ]
}

async function spread({ store, quick }: Settings): Promise<readonly Reading[]> {
  const inputs = quick ? instances : 3 * instances
  return withBareInputs(store, (bare) =>
    withHoldfast(store, [counter], async (holdfast) => {
      const began = performance.now()
      await executeAll(holdfast, { inputs, callers: callersOfMany, idOf: (nth) => `${nth % instances}` })
      const ms = performance.now() - began
      const bareMs = await bare?.begin(inputs, callersOfMany)
      return rates(inputs, ms, bareMs, atLeast(8_000))
    }),
  )
}

/** Inputs of short and long histories in turns, so that both see the same machine. */
async function oneByOne({ store, quick }: Settings): Promise<readonly Reading[]> {
  const [rounds, inputs] = [quick ? 10 : 30, 40]
  return withBareInputs(store, (bare) =>
    withHoldfast(store, [counter], async (holdfast) => {
      await fill(holdfast, 'long', history.long)
      const times = { bare: [] as number[], short: [] as number[], long: [] as number[] }
      for (let round = 0; round < rounds; round += 1) {
        await fill(holdfast, `short-${round}`, history.short)
        // The first one of a round pays for what came before it.
        await timedInputs(holdfast, `short-${round}`, 1)
        times.short.push(...(await timedInputs(holdfast, `short-${round}`, inputs)))
        times.bare.push(...((await bare?.commits(bareCommits / 10)) ?? []))
        times.long.push(...(await timedInputs(holdfast, 'long', inputs)))
        times.bare.push(...((await bare?.commits(bareCommits / 10)) ?? []))
      }
      return readingsOf(times, bare)
    }),
  )
}

function readingsOf(
  { bare, short, long }: Readonly<Record<'bare' | 'short' | 'long', readonly number[]>>,
  statements: BareInputs | null,
): readonly Reading[] {
  const [few, many] = [quantile(short, 0.5), quantile(long, 0.5)]
  const readings: Reading[] = [
    { metric: `${history.short} events, p50`, unit: 'µs', value: few },
    { metric: `${history.short} events, p99`, unit: 'µs', value: quantile(short, 0.99) },
    { metric: '100,000 events, p50', unit: 'µs', value: many },
    { metric: '100,000 events, p99', unit: 'µs', value: quantile(long, 0.99) },
    { metric: '100,000 / 10 events', unit: '×', value: many / few, goals: atMost(1.2), better: 'lower' },
  ]
  if (statements === null) return readings
  const commit = quantile(bare, 0.5)
  return [
    ...readings,
    { metric: 'bare commit, p50', unit: 'µs', value: commit },
    { metric: 'p50 / bare commit', unit: '×', value: few / commit, goals: atMost(1.5), better: 'lower' },
  ]
}

async function fill(holdfast: Holdfast, id: string, events: number): Promise<void> {
  for (let left = events; left > 0; left -= eventsAtOnce) {
    await holdfast.execute(counter, { type: 'Fill', id, events: Math.min(left, eventsAtOnce) })
  }
}

async function timedInputs(holdfast: Holdfast, id: string, inputs: number): Promise<readonly number[]> {
  const times: number[] = []
  for (let nth = 0; nth < inputs; nth += 1) {
    const began = performance.now()
    await holdfast.execute(counter, { type: 'Count', id })
    times.push((performance.now() - began) * 1_000)
  }
  return times
}

/** An input that asks for an effect, until what the effect returned is decided. */
async function effects({ store, quick }: Settings): Promise<readonly Reading[]> {
  const rounds = quick ? 300 : 2_000
  return withStore(store, (opened) => {
    const sizes = watchBatches(opened)
    return withHoldfast(opened, [counter], async (holdfast) => {
      await holdfast.work()
      await round(holdfast)
      const before = { commits: sizes.start.calls + sizes.commit.calls, claims: sizes.claim.calls }
      const began = performance.now()
      const { writes } = await countWrites(store, async () => {
        for (let nth = 0; nth < rounds; nth += 1) await round(holdfast)
      })
      const ms = performance.now() - began
      const after = { commits: sizes.start.calls + sizes.commit.calls, claims: sizes.claim.calls }
      const per = (what: 'commits' | 'claims'): number => (after[what] - before[what]) / rounds
      return [
        { metric: 'time per round', unit: 'µs', value: (ms / rounds) * 1_000 },
        { metric: 'commits', unit: 'per round', value: per('commits'), goals: atMost(2), better: 'lower' },
        { metric: 'claims that found it', unit: 'per round', value: per('claims'), goals: atMost(1), better: 'lower' },
        ...(writes === null
          ? []
          : [
              {
                metric: 'write transactions',
                unit: 'per round',
                value: writes.transactions / rounds,
                better: 'lower',
              } as const,
            ]),
      ]
    })
  })
}

async function round(holdfast: Holdfast): Promise<void> {
  const performed = once(charges, 'performed')
  const answer = await holdfast.execute(counter, { type: 'Charge', id: 'effects' })
  if (answer.outcome !== 'accepted') throw new Error('An input was not accepted.')
  const { count } = answer.state
  await performed
  while (((await holdfast.state(counter, 'effects'))?.count ?? 0) === count) await new Promise(setImmediate)
}
