// A backlog: runs without steps are started while nobody works, then a worker takes them all. Ends when the worker has
// stopped, so that every last commit is part of the time.

import { workflow, type Holdfast } from 'holdfast'
import { watchBatches, type BatchSizes } from '../batch-sizes.ts'
import { withHoldfast, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { withStore } from '../stores.ts'
import { countWrites, readingsOfWrites, type Writes } from '../writes.ts'

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
  cases: (settings) => [{ name: '', sample: () => measure(settings) }],
}

export function backlogOf({ quick }: Settings): number {
  return quick ? 20_000 : 60_000
}

/** How it went in one of the two halves. */
interface Half {
  readonly ms: number
  readonly writes: Writes | null
}

export interface Backlog {
  readonly enqueue: Half
  readonly drain: Half
  readonly sizes: BatchSizes
}

/** Enqueues so many runs on a store of their own, and drains them. */
export function performBacklog(store: string, runs: number): Promise<Backlog> {
  return withStore(store, (opened) => {
    const sizes = watchBatches(opened)
    return withHoldfast(opened, [noSteps], async (holdfast) => {
      const filled = await countWrites(store, () => fill(holdfast, runs))
      const emptied = await countWrites(store, () => empty(holdfast, runs))
      return {
        enqueue: { ms: filled.answer, writes: filled.writes },
        drain: { ms: emptied.answer, writes: emptied.writes },
        sizes,
      }
    })
  })
}

async function fill(holdfast: Holdfast, runs: number): Promise<number> {
  const began = performance.now()
  let left = runs
  const customer = async (): Promise<void> => {
    for (; left > 0;) {
      left -= 1
      await holdfast.start(noSteps, left)
    }
  }
  await Promise.all(Array.from({ length: startsAtOnce }, customer))
  return performance.now() - began
}

async function empty(holdfast: Holdfast, runs: number): Promise<number> {
  performed = 0
  const began = performance.now()
  const all = new Promise<void>((resolve) => {
    onPerformed = () => performed === runs && resolve()
  })
  const worker = await holdfast.work({ concurrency: 1_000 })
  await all
  await worker.stop()
  return performance.now() - began
}

async function measure(settings: Settings): Promise<readonly Reading[]> {
  const runs = backlogOf(settings)
  const { enqueue: filled, drain } = await performBacklog(settings.store, runs)
  return [
    {
      metric: 'enqueue',
      unit: 'runs/s',
      value: (runs / filled.ms) * 1_000,
      goals: { sqlite: { is: 'at least', value: 30_000 }, postgres: { is: 'at least', value: 32_000 } },
    },
    {
      metric: 'drain',
      unit: 'runs/s',
      value: (runs / drain.ms) * 1_000,
      goals: { postgres: { is: 'at least', value: 21_000 } },
    },
    ...readingsOfWrites(filled.writes, runs, { what: 'enqueue: ' }),
    ...readingsOfWrites(drain.writes, runs, { what: 'drain: ' }),
  ]
}
