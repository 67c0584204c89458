// What is left of the store's own speed once the engine is around it. Each sample performs runs with the engine, notes how
// many went together in a call of the store, and then has the same done in batches of those sizes with no engine: inserts
// with leases, two checkpoints and the end of each run of three steps; on Postgres also a backlog of runs without steps.
// Both in one process, one right after the other, so that the ratio does not depend on what the machine's neighbours do.
//
// On SQLite the calls of the store are made again. On Postgres not even the store is left: what it sends was noted before.

import type { Store } from 'holdfast'
import { runId } from '../bare-runs.ts'
import type { Case, Goals, Reading, Scenario, Settings } from '../scenario.ts'
import { sendBacklog } from '../sent-backlog.ts'
import { sendThreeSteps } from '../sent-runs.ts'
import { storeKindOf, withPostgresStore, withStore } from '../stores.ts'
import { performThreeSteps, type Batches } from '../three-steps.ts'
import { backlogOf, performBacklog } from './enqueue.ts'
import { caseNameOf, countOf, levels, performRuns, type Level } from './runs.ts'

export const ceiling: Scenario = {
  name: 'ceiling',
  about: 'the same batches with no engine around them, and the engine as a share of that',
  onlyOn: ['sqlite', 'postgres'],
  cases(settings) {
    const backlog: Case = { name: 'backlog', sample: () => measureBacklog(settings) }
    const runs = levels.map((level) => ({ name: caseNameOf(level), sample: () => measure(level, settings) }))
    // What is profiled is the last case.
    return storeKindOf(settings.store) === 'postgres' ? [backlog, ...runs] : runs
  },
}

async function measure(level: Level, settings: Settings): Promise<readonly Reading[]> {
  const { store } = settings
  const runs = countOf(level, settings)
  const { ms, sizes } = await performRuns(store, level.atOnce, runs)
  const batches = { atOnce: level.atOnce, start: whole(sizes.start.value), commit: whole(sizes.commit.value) }
  const bareMs = await (storeKindOf(store) === 'postgres'
    ? withPostgresSchema(store, (place) => sendThreeSteps(place, batches, runs))
    : withStore(store, (opened) => performBare(opened, batches, runs)))
  const goals: Goals = { sqlite: { is: 'at least', value: 50 }, postgres: { is: 'at least', value: 40 } }
  return [
    { metric: 'engine', unit: 'runs/s', value: (runs / ms) * 1_000 },
    { metric: 'ceiling', unit: 'runs/s', value: (runs / bareMs) * 1_000 },
    {
      metric: 'engine / ceiling',
      unit: '%',
      value: (100 * bareMs) / ms,
      goals: level.atOnce === 1_000 ? goals : {},
      better: 'higher',
    },
    { metric: 'starts together', unit: 'runs', value: batches.start },
    { metric: 'commits together', unit: 'runs', value: batches.commit },
  ]
}

async function measureBacklog(settings: Settings): Promise<readonly Reading[]> {
  const runs = backlogOf(settings)
  const { enqueue, drain, sizes } = await performBacklog(settings.store, runs)
  const batches = {
    start: whole(sizes.start.value),
    claim: whole(sizes.claim.value),
    commit: whole(sizes.commit.value),
  }
  const bare = await withPostgresSchema(settings.store, (place) => sendBacklog(place, batches, runs))
  return [
    { metric: 'enqueue, engine', unit: 'runs/s', value: (runs / enqueue.ms) * 1_000 },
    { metric: 'enqueue, ceiling', unit: 'runs/s', value: (runs / bare.enqueueMs) * 1_000 },
    { metric: 'enqueue, engine / ceiling', unit: '%', value: (100 * bare.enqueueMs) / enqueue.ms, better: 'higher' },
    { metric: 'drain, engine', unit: 'runs/s', value: (runs / drain.ms) * 1_000 },
    { metric: 'drain, ceiling', unit: 'runs/s', value: (runs / bare.drainMs) * 1_000 },
    { metric: 'drain, engine / ceiling', unit: '%', value: (100 * bare.drainMs) / drain.ms, better: 'higher' },
    { metric: 'starts together', unit: 'runs', value: batches.start },
    { metric: 'claims together', unit: 'runs', value: batches.claim },
    { metric: 'commits together', unit: 'runs', value: batches.commit },
  ]
}

/** Answers how many ms it took. */
async function performBare(store: Store, batches: Batches, runs: number): Promise<number> {
  const session = runId(0)
  await store.migrate()
  await store.beat({ session, leaseMs: 60_000 })
  const began = performance.now()
  await performThreeSteps(
    {
      async start(fresh) {
        const answers = await store.start(fresh)
        if (!answers.every(({ created }) => created)) throw new Error('A run existed already.')
      },
      async commit(transitions) {
        for (const answer of await store.commit(transitions)) {
          if (answer.outcome !== 'committed') throw new Error(`A transition was refused: ${answer.reason}.`)
        }
      },
    },
    session,
    batches,
    runs,
  )
  return performance.now() - began
}

/** Lets `use` have a schema with nothing in it but our tables. */
function withPostgresSchema<Result>(
  url: string,
  use: (place: { readonly url: string; readonly schema: string }) => Promise<Result>,
): Promise<Result> {
  return withPostgresStore(url, async (store, schema) => {
    await store.migrate()
    return use({ url, schema })
  })
}

function whole(mean: number): number {
  return Math.max(1, Math.round(mean))
}
