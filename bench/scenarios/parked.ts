// What a run costs that waits, for a day or for a signal: memory after a collection, minus memory before, by the number of runs. Once
// with every frame kept in memory, once with none. On the memory store both include the stored run itself. On Postgres,
// where every look is a way to the server and back, few must do.

import { setTimeout } from 'node:timers/promises'
import { workflow, type Holdfast } from 'holdfast'
import { withHoldfast, type Case, type Reading, type Scenario } from '../scenario.ts'
import { storeKindOf } from '../stores.ts'

const sleeper = workflow('bench.sleeper', async (ctx, order: number) => {
  await ctx.sleep('1 day')
  return order
})

const waiter = workflow('bench.waiter', async (ctx, order: number) => {
  await ctx.receive('go')
  return order
})

export const parked: Scenario = {
  name: 'parked',
  about: 'resident bytes per run that waits, and what thousands of them cost while nothing happens',
  cases: ({ store, quick }) =>
    (storeKindOf(store) === 'postgres' ? [10_000] : [10_000, quick ? 20_000 : 100_000]).flatMap((runs) => [
      parkedCase(store, runs, sleeper, 'sleeping, frames kept', runs),
      parkedCase(store, runs, sleeper, 'sleeping, frames dropped', 0),
      parkedCase(store, runs, waiter, 'waiting for a signal, frames kept', runs),
    ]),
}

type Waiting = typeof sleeper

function parkedCase(store: string, runs: number, waiting: Waiting, name: string, frames: number): Case {
  return {
    name: `${runs.toLocaleString('en-US')} runs ${name}`,
    isolated: true,
    sample: () => withHoldfast(store, [waiting], (holdfast) => measure(holdfast, waiting, runs, frames)),
  }
}

/** How long nothing happens. */
const idleMs = 5_000

async function measure(
  holdfast: Holdfast,
  waiting: Waiting,
  runs: number,
  frames: number,
): Promise<readonly Reading[]> {
  await holdfast.work({ concurrency: 1_000, cachedRuns: frames })
  await park(holdfast, waiting, 1_000)
  const before = await settledMemory()
  await park(holdfast, waiting, runs)
  const after = await settledMemory()
  // What is left of the work before must be over.
  await setTimeout(3_000)
  const cpu = process.cpuUsage()
  await setTimeout(idleMs)
  const { user, system } = process.cpuUsage(cpu)
  return [
    { metric: 'CPU while idle', unit: '% of a core', value: (user + system) / idleMs / 10 },
    { metric: 'heap per run', unit: 'bytes', value: (after.heapUsed - before.heapUsed) / runs, better: 'lower' },
    { metric: 'RSS per run', unit: 'bytes', value: (after.rss - before.rss) / runs },
  ]
}

/** Starts so many runs and waits until each of them is parked. */
async function park(holdfast: Holdfast, waiting: Waiting, runs: number): Promise<void> {
  const ids: string[] = []
  while (ids.length < runs) {
    const batch = Array.from({ length: Math.min(1_000, runs - ids.length) }, (_, order) =>
      holdfast.start(waiting, order),
    )
    for (const run of await Promise.all(batch)) ids.push(run.id)
  }
  const parkedOne = async (id: string): Promise<void> => {
    while ((await holdfast.run(id).status()) !== 'waiting') await nextTurn()
  }
  // Many at once, because a look may be a way to a server and back.
  for (let first = 0; first < runs; first += 100) await Promise.all(ids.slice(first, first + 100).map(parkedOne))
}

async function settledMemory(): Promise<NodeJS.MemoryUsage> {
  if (globalThis.gc === undefined) throw new Error('This scenario needs node --expose-gc.')
  for (let count = 0; count < 5; count += 1) {
    await nextTurn()
    globalThis.gc()
  }
  return process.memoryUsage()
}

function nextTurn(): Promise<void> {
  return setTimeout(5)
}
