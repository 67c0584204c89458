// Whole runs, from `start` to `result()`: three steps each, so many at once. As soon as one ends the next begins.

import { workflow, type Holdfast, type HoldfastOptions } from 'holdfast'
import { calibrate } from '../calibration.ts'
import { watchBatches, type BatchSizes } from '../batch-sizes.ts'
import { withHoldfast, type Goal, type Goals, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { storeKindOf, withStore } from '../stores.ts'
import { countWrites, readingsOfWrites, type Writes } from '../writes.ts'

const threeSteps = workflow('bench.three-steps', async (ctx, order: number) => {
  const price = await ctx.step('price', async () => order + 99)
  const paid = await ctx.step('charge', async () => price > 0)
  return ctx.step('ship', async () => ({ parcel: order, paid }))
})

export interface Level {
  readonly atOnce: number
  /** How many runs a sample takes, by store: enough for a second or so. */
  readonly memory: number
  readonly sqlite: number
  readonly postgres: number
}

export const levels: readonly Level[] = [
  { atOnce: 1, memory: 6_000, sqlite: 2_000, postgres: 1_000 },
  { atOnce: 10, memory: 15_000, sqlite: 10_000, postgres: 6_000 },
  { atOnce: 100, memory: 60_000, sqlite: 30_000, postgres: 20_000 },
  { atOnce: 1_000, memory: 60_000, sqlite: 30_000, postgres: 30_000 },
]

export const runs: Scenario = {
  name: 'runs',
  about: 'runs of three steps, start to result, so many at once',
  cases: (settings) =>
    levels.map((level) => ({ name: caseNameOf(level), sample: () => measure(level.atOnce, settings, level) })),
}

export function caseNameOf({ atOnce }: Level): string {
  return `${atOnce.toLocaleString('en-US')} at once`
}

export function countOf(level: Level, { store, quick }: Settings): number {
  const count = level[storeKindOf(store)]
  return quick ? Math.round(count / 3) : count
}

export interface Performed {
  readonly ms: number
  readonly cpuMicros: number
  readonly sizes: BatchSizes
  readonly writes: Writes | null
}

/** Performs so many runs with a worker on a store of their own. */
export function performRuns(
  store: string,
  atOnce: number,
  runs: number,
  options: Pick<HoldfastOptions, 'codec'> = {},
): Promise<Performed> {
  return withStore(store, (opened) => {
    const sizes = watchBatches(opened)
    const use = async (holdfast: Holdfast): Promise<Performed> => {
      const { answer, writes } = await countWrites(store, () => perform(holdfast, atOnce, runs))
      return { ...answer, sizes, writes }
    }
    return withHoldfast(opened, [threeSteps], use, options)
  })
}

async function perform(holdfast: Holdfast, atOnce: number, runs: number): Promise<Pick<Performed, 'ms' | 'cpuMicros'>> {
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
  return { ms, cpuMicros: user + system }
}

async function measure(atOnce: number, settings: Settings, level: Level): Promise<readonly Reading[]> {
  const runs = countOf(level, settings)
  const before = await calibrate()
  const { ms, cpuMicros, sizes, writes } = await performRuns(settings.store, atOnce, runs)
  const loop = (before + (await calibrate())) / 2
  const { throughput, time } = goalsAt(atOnce)
  return [
    { metric: 'throughput', unit: 'runs/s', value: (runs / ms) * 1_000, goals: throughput },
    { metric: 'time per run', unit: 'µs', value: (ms / runs) * 1_000, goals: time },
    { metric: 'CPU per run', unit: 'µs', value: cpuMicros / runs },
    { metric: 'CPU per run / loop', unit: '×', value: cpuMicros / runs / loop, better: 'lower' },
    { metric: 'starts together', unit: 'runs', value: sizes.start.value },
    { metric: 'commits together', unit: 'runs', value: sizes.commit.value },
    ...readingsOfWrites(writes, runs),
  ]
}

function goalsAt(atOnce: number): Readonly<Record<'throughput' | 'time', Goals>> {
  const atLeast = (value: number): Goal => ({ is: 'at least', value })
  if (atOnce === 10) return { throughput: { postgres: atLeast(1_500) }, time: {} }
  if (atOnce !== 1_000) return { throughput: {}, time: {} }
  return {
    throughput: { memory: atLeast(40_000), sqlite: atLeast(4_000), postgres: atLeast(6_000) },
    time: { memory: { is: 'at most', value: 25 } },
  }
}
