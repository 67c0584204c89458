// What is left of the store's own speed once the engine is around it. Each sample performs three-step runs with the
// engine, notes how many starts and commits went together, and then makes the same calls in batches of those sizes
// directly on a store: inserts with leases, two checkpoints and the end of each run. Both in one process, one right after
// the other, so that the ratio does not depend on what the machine's neighbours do.

import type { Store } from 'holdfast'
import type { Reading, Scenario, Settings } from '../scenario.ts'
import { withStore } from '../stores.ts'
import { caseNameOf, countOf, levels, performRuns, type Level } from './runs.ts'

type NewRun = Parameters<Store['start']>[0][number]
type Transition = Parameters<Store['commit']>[0][number]

interface Batches {
  readonly atOnce: number
  readonly start: number
  readonly commit: number
}

export const ceiling: Scenario = {
  name: 'ceiling',
  about: 'the same batches of starts and commits with no engine around them, and the engine as a share of that',
  onlyOn: 'sqlite',
  cases: (settings) => levels.map((level) => ({ name: caseNameOf(level), sample: () => measure(level, settings) })),
}

async function measure(level: Level, settings: Settings): Promise<readonly Reading[]> {
  const runs = countOf(level, settings)
  const { ms, sizes } = await performRuns(settings.store, level.atOnce, runs)
  const batches = {
    atOnce: level.atOnce,
    start: Math.max(1, Math.round(sizes.start.value)),
    commit: Math.max(1, Math.round(sizes.commit.value)),
  }
  const bareMs = await withStore(settings.store, (store) => performBare(store, batches, runs))
  const isGoal = level.atOnce === 1_000
  return [
    { metric: 'engine', unit: 'runs/s', value: (runs / ms) * 1_000 },
    { metric: 'ceiling', unit: 'runs/s', value: (runs / bareMs) * 1_000 },
    {
      metric: 'engine / ceiling',
      unit: '%',
      value: (100 * bareMs) / ms,
      ...(isGoal ? { goals: { sqlite: { is: 'at least', value: 50 } as const } } : {}),
    },
    { metric: 'starts together', unit: 'runs', value: batches.start },
    { metric: 'commits together', unit: 'runs', value: batches.commit },
  ]
}

/** Keeps as many runs under way as the engine did, and answers how long all of them took. */
async function performBare(store: Store, batches: Batches, runs: number): Promise<number> {
  const session = runId(0)
  await store.migrate()
  await store.beat({ session, leaseMs: 60_000 })
  let due: Transition[] = []
  let [started, ended] = [0, 0]
  const began = performance.now()
  while (ended < runs) {
    while (started < runs && started - ended + batches.start <= Math.max(batches.atOnce, batches.start)) {
      const count = Math.min(batches.start, runs - started)
      const fresh = Array.from({ length: count }, (_, index) => newRun(session, started + index))
      const answers = await store.start(fresh)
      for (const { created, run } of answers) {
        if (!created) throw new Error('A run existed already.')
        due.push(transitionAfter(session, run.id, 1)!)
      }
      started += count
    }
    const batch = due.slice(0, batches.commit)
    due = due.slice(batches.commit)
    const answers = await store.commit(batch)
    answers.forEach((answer, index) => {
      if (answer.outcome !== 'committed') throw new Error(`A transition was refused: ${answer.reason}.`)
      const next = transitionAfter(session, batch[index]!.runId, answer.seq)
      if (next === null) ended += 1
      else due.push(next)
    })
  }
  return performance.now() - began
}

function newRun(session: string, order: number): NewRun {
  const id = runId(order)
  return {
    id,
    shard: 0,
    type: 'bench.three-steps',
    version: 1,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    priority: 0,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: { session, token: 1 },
    leaseMs: null,
    transition: transitionId(session),
    first: { kind: 'started', name: null, meta: null, data: String(order) },
  }
}

/** What the engine commits when the journal of such a run is at `seq`; null when it has ended. */
function transitionAfter(session: string, runId: string, seq: number): Transition | null {
  const shared = {
    id: transitionId(session),
    runId,
    guard: { seq, lease: { session, token: 1 } },
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
  }
  const meta = { attempt: 1, ms: 0 }
  if (seq === 1) {
    return { ...shared, status: null, append: [{ kind: 'step-succeeded', name: 'price', meta, data: '10099' }] }
  }
  if (seq === 2) {
    return { ...shared, status: null, append: [{ kind: 'step-succeeded', name: 'charge', meta, data: 'true' }] }
  }
  if (seq > 3) return null
  const data = '{"parcel":10000,"paid":true}'
  return {
    ...shared,
    status: 'succeeded',
    append: [
      { kind: 'step-succeeded', name: 'ship', meta, data },
      { kind: 'succeeded', name: null, meta: null, data },
    ],
  }
}

let transitions = 0

function transitionId(session: string): string {
  transitions += 1
  return `${session}.${transitions.toString(36)}`
}

/** Of the form that the engine's ids have: later ones sort behind earlier ones. */
function runId(order: number): string {
  const time = Date.now().toString(16).padStart(12, '0')
  const counter = order.toString(16).padStart(7, '0')
  const chance = Math.floor(Math.random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8${counter.slice(0, 3)}-${counter.slice(3)}${chance}`
}
