// A database that goes away and comes back in the middle of everything, on a cluster of its own. The process that performs
// runs stays, and nobody restarts anything in it.

import { setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { isHoldfastError, workflow, type Holdfast, type RunHandle } from 'holdfast'
import { until } from '../support/until.ts'
import { keepLines } from '../holdfast/open.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { holdfastAt } from './proxied.ts'

/** `kill` is SIGKILL to the postmaster, as from a machine that is out of memory. */
export type Blow = 'fast' | 'immediate' | 'kill'

export interface Restarted {
  readonly blows: number
  readonly runs: number
  /** How often a body of a step began. */
  readonly bodies: number
  /** Lines with the level `error` that were logged. */
  readonly errors: readonly string[]
  /** What must not be, each as a sentence. */
  readonly violations: readonly string[]
}

/** What a commit has acknowledged must survive, so it is written to disk as in earnest. */
export async function startOwnPostgres(): Promise<Cluster> {
  const cluster = await startPostgres({ version: 'embedded', settings: { max_connections: '60' } })
  onTestFinished(() => cluster.remove())
  return cluster
}

async function strikeBack(cluster: Cluster, blow: Blow): Promise<void> {
  if (blow !== 'kill') return cluster.restart(blow)
  await cluster.kill()
  await cluster.start()
}

/** Starts runs, strikes between them at even distances, and judges what is left when all have ended. */
export async function restartAmid(runs: number, blows: readonly Blow[]): Promise<Restarted> {
  const cluster = await startOwnPostgres()
  const store = `${cluster.url}?schema=restarts`
  const begun = new Map<string, number>()
  const three = workflow('restarts', async (ctx, number: number) => {
    const step = (name: string): Promise<number> =>
      ctx.step(name, ({ attempt }) => {
        const body = `${ctx.run.id} ${name}`
        begun.set(body, (begun.get(body) ?? 0) + 1)
        return attempt
      })
    const marks = [await step('a'), await step('b')]
    await ctx.sleep(number % 3 === 0 ? 20 : 0)
    return [...marks, await step('c')]
  })
  const logger = keepLines()
  const holdfast = await holdfastAt({ store, workflows: [three], logger })
  await holdfast.work({ lease: '30s', heartbeat: '1s', concurrency: 50 })

  const results = new Map<string, readonly number[]>()
  const ids: string[] = []
  let struck = 0
  let striking = Promise.resolve()
  const perform = async (number: number): Promise<void> => {
    const run = await holdfast.start(three, number)
    ids.push(run.id)
    results.set(run.id, await resultOf(run))
  }
  const all: Promise<void>[] = []
  for (let number = 0; number < runs; number += 1) {
    all.push(perform(number))
    // A share of them is under way at any time; starts go on while the database is away.
    await until('others have ended', () => number + 1 - results.size < runs / 5, 120_000)
    const blow = blows[struck]
    if (blow === undefined || number < (runs * (struck + 1)) / (blows.length + 1)) continue
    await striking
    struck += 1
    striking = strikeBack(cluster, blow)
  }
  await striking
  await Promise.all(all)
  return {
    blows: struck,
    runs: results.size,
    bodies: [...begun.values()].reduce((sum, count) => sum + count, 0),
    errors: logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message),
    violations: await judge(holdfast, ids, results),
  }
}

/** A caller that asks while the database is away may get that as its error; a run is not harmed by that, and can be asked for again. */
async function resultOf<Output>(run: RunHandle<Output>): Promise<Output> {
  for (;;) {
    try {
      return await run.result({ timeout: '120s' })
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
      await setTimeout(50)
    }
  }
}

async function judge(
  holdfast: Holdfast,
  ids: readonly string[],
  results: ReadonlyMap<string, readonly number[]>,
): Promise<readonly string[]> {
  const found: string[] = []
  const { count } = await holdfast.count({}, { atMost: 100_000 })
  if (count !== ids.length || results.size !== ids.length) found.push(`${ids.length} starts made ${count} runs`)
  const stranded = await holdfast.count({ status: ['pending', 'running', 'waiting', 'failed'] })
  if (stranded.count > 0) found.push(`${stranded.count} runs did not succeed`)
  for (const { name, offenders } of await holdfast.doctor()) {
    if (offenders.length > 0) found.push(`${name} does not hold for ${offenders.join(', ')}`)
  }
  return found
}
