// One idempotency key is one run, also where the runs that ask for it lie in different shards, and whatever else is starting.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { NewRun, Started } from '../../../../../src/store.ts'
import { openPostgresStore, type PostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { createContractBench, type ContractBench } from '../../../../../src/testing/contract/index.ts'
import { openTestStore, type TestStore } from '../../../../support/postgres-store.ts'

const races = 50

let subject: TestStore
let other: PostgresStore
let bench: ContractBench

beforeAll(async () => {
  // Two starts that take two keys in opposite orders are in each other's way.
  const storageTimeout = '6s'
  subject = await openTestStore({ shards: 16, storageTimeout })
  const { url, schema, clock } = subject
  other = await openPostgresStore({ url, schema, now: clock.expression, listen: false, storageTimeout })
  bench = createContractBench(subject)
})

afterAll(async () => {
  await other.close()
  await subject.store.close()
})

const keyed = (idempotencyKey: string | null): NewRun => bench.newRun({ key: bench.unique('key'), idempotencyKey })

/** Two whose business keys lie in different shards. */
function rivals(idempotencyKey: string): readonly [NewRun, NewRun] {
  const first = keyed(idempotencyKey)
  for (;;) {
    const second = keyed(idempotencyKey)
    if (second.shard !== first.shard) return [first, second]
  }
}

/** As the engine starts them: what another process has for now is sent again. */
async function started(store: PostgresStore, runs: readonly NewRun[]): Promise<readonly Started[]> {
  const answers = new Map<NewRun, Started>()
  for (let open = runs; open.length > 0; open = open.filter((run) => !answers.has(run))) {
    const answered = await store.start(open, { mayWait: open.length < runs.length })
    for (const [at, answer] of answered.entries()) if (answer.taken !== 'busy') answers.set(open[at] as NewRun, answer)
  }
  return runs.map((run) => answers.get(run) as Started)
}

async function startAtOnce(first: readonly NewRun[], second: readonly NewRun[]) {
  const [mine, theirs] = await Promise.all([started(subject.store, first), started(other, second)])
  return [...mine, ...theirs]
}

describe('an idempotency key with several shards', () => {
  it(`of two that start at once in different shards, one creates its run, in ${races} races`, async () => {
    for (let race = 0; race < races; race += 1) {
      const pair = rivals(bench.unique('once'))
      const answers = await startAtOnce([pair[0]], [pair[1]])
      const winner = answers.findIndex(({ created }) => created)
      const [won, lost] = [pair[winner], pair[1 - winner]]
      expect(answers[1 - winner]).toMatchObject({ created: false, taken: 'idempotency-key', run: { id: won?.id } })
      // Nothing is left of the other one: its id and its business key are free.
      expect(await subject.store.get([lost?.id ?? ''])).toEqual([undefined])
      const again = bench.newRun({ key: lost?.key ?? null })
      expect(await other.start([again])).toMatchObject([{ created: true }])
    }
  })

  it('two batches that take the same keys in opposite orders both end, and each key has one run', async () => {
    for (let race = 0; race < 5; race += 1) {
      const [one, two] = [bench.unique('once'), bench.unique('once')]
      const answers = await startAtOnce([keyed(one), keyed(two)], [keyed(two), keyed(one)])
      expect(answers.filter(({ created }) => created)).toHaveLength(2)
      expect(new Set(answers.map(({ run }) => run?.id)).size).toBe(2)
    }
  })

  it('stays with its run when that is started again, by the process that lost the answer or by another one', async () => {
    const [run, rival] = rivals(bench.unique('once'))
    const stranger = { ...run, transition: bench.unique('start') }
    const { store } = subject
    expect(await store.start([run])).toMatchObject([{ created: true }])
    expect(await store.start([run])).toMatchObject([{ created: true, run: { id: run.id } }])
    expect(await store.start([stranger])).toMatchObject([{ created: false, taken: 'id' }])
    expect(await store.start([rival])).toMatchObject([
      { created: false, taken: 'idempotency-key', run: { id: run.id } },
    ])
  })

  it('is free when its run was removed, also if that is started again meanwhile', async () => {
    const [run, rival] = rivals(bench.unique('once'))
    const { store } = subject
    await store.start([run])
    await bench.control(run.id, { kind: 'cancel', mode: 'now', reason: null })
    await bench.control(run.id, { kind: 'remove', reason: null })
    expect(await store.start([run])).toMatchObject([{ run: { id: run.id } }])
    expect(await store.start([rival])).toMatchObject([{ created: true }])
  })

  it('is free when the business key of its run was taken', async () => {
    const [run, rival] = rivals(bench.unique('once'))
    const { store } = subject
    await store.start([bench.newRun({ key: run.key })])
    expect(await store.start([run])).toMatchObject([{ created: false, taken: 'key' }])
    expect(await store.start([rival])).toMatchObject([{ created: true }])
  })
})
