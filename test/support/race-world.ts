// Where races take place: a read-committed store whose statements come in the order of a seed, and short ways to look at
// what came of it.

import assert from 'node:assert/strict'
import type { Run } from '../../src/core/model/run.ts'
import type { NewRun, Started } from '../../src/store.ts'
import { createReadCommittedStore, type ReadCommittedStore } from '../read-committed/store.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { createContractBench, type ContractBench } from '../../src/testing/contract/index.ts'
import { Interleaver } from './interleaver.ts'

export interface RaceWorld extends ContractBench {
  readonly store: ReadCommittedStore
  /** The statements that were executed, in order. */
  readonly executed: readonly string[]
  /** Makes calls at once, and fails if they come to a standstill. */
  readonly atOnce: <Answers extends readonly unknown[]>(
    ...calls: { readonly [Index in keyof Answers]: () => Promise<Answers[Index]> }
  ) => Promise<Answers>
}

export type Race = (world: RaceWorld) => Promise<void>

export function createRaceWorld(seed: number, mutations: readonly string[] = [], isSpread = false): RaceWorld {
  const clock = createVirtualClock()
  const interleaver = new Interleaver(seed)
  const { schedule, executed } = interleaver
  const store = createReadCommittedStore({ clock, schedule, mutations: new Set(mutations), isSpread })
  return {
    ...createContractBench({ store, clock }),
    store,
    executed,
    atOnce: (...calls) => interleaver.settle(calls.map((call) => call()) as never, () => store.waits()),
  }
}

/** The same, `count` times. */
export function times<Answer>(count: number, call: (index: number) => Promise<Answer>): (() => Promise<Answer>)[] {
  return Array.from({ length: count }, (_, index) => () => call(index))
}

/** One entry after the other, and time does not run backwards. */
export async function assertGapless({ journal, run }: RaceWorld, runId: string): Promise<void> {
  const entries = await journal(runId)
  assert.deepEqual(
    entries.map(({ seq }) => seq),
    entries.map((_, index) => index + 1),
  )
  assert.equal((await run(runId)).seq, entries.length, 'the row knows its last entry')
}

export async function kinds({ journal }: RaceWorld, runId: string): Promise<readonly string[]> {
  return (await journal(runId)).map(({ kind }) => kind)
}

export async function startOne({ store }: RaceWorld, run: NewRun): Promise<Started> {
  const [answer] = await store.start([run])
  assert.ok(answer !== undefined && answer.taken !== 'busy')
  return answer
}

/** Live runs that have this key. */
export async function holdersOf({ store }: RaceWorld, key: string): Promise<readonly Run[]> {
  return (await store.find({ key }, { limit: 100 })).filter(({ endedAt }) => endedAt === null)
}

export function assertNobodySleeps(run: Run, messages: number): void {
  const sleeps = run.status === 'waiting' && run.readiness !== 'ready' && messages > 0
  assert.ok(!sleeps, 'a run with a message sleeps on')
}
