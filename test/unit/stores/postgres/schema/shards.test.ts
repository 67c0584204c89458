// What is read and taken over all shards at once: each is a statement of its own, so what belongs together must be put
// together here, and what happens between two statements must not be lost.

import { afterEach, describe, expect, it } from 'vitest'
import { createRunIds } from '../../../../../src/core/model/run-id.ts'
import type { Change, NewRun } from '../../../../../src/store.ts'
import type { PostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { createContractBench, type ContractBench } from '../../../../../src/testing/contract/index.ts'
import { createSeededRandom } from '../../../../../src/testing/seeded-random.ts'
import type { PostgresClock } from '../../../../support/postgres-clock.ts'
import { openTestStore } from '../../../../support/postgres-store.ts'

interface Sharded {
  readonly store: PostgresStore
  readonly clock: PostgresClock
  readonly bench: ContractBench
  /** New runs, the next shard for each. */
  readonly spread: (count: number, changes?: Partial<NewRun>) => readonly NewRun[]
}

const opened: PostgresStore[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

async function open(shards: number): Promise<Sharded> {
  const { store, clock } = await openTestStore({ shards, distributed: shards > 1, connections: 8 })
  opened.push(store)
  await store.migrate()
  const now = (): number => clock.now()
  const random = createSeededRandom(1)
  const ids = createRunIds({ clock: { now, monotonic: now, after: () => () => undefined }, random })
  const bench = createContractBench({ store, clock })
  let turn = 0
  const spread: Sharded['spread'] = (count, changes = {}) =>
    Array.from({ length: count }, () => {
      const shard = (turn += 1) % shards
      return bench.newRun({ id: ids.next(shard), shard, ...changes })
    })
  return { store, clock, bench, spread }
}

const idsOf = (runs: readonly { readonly id: string }[]): readonly string[] => runs.map(({ id }) => id).toSorted()

describe.each([1, 16])('with %i shards', (shards) => {
  it('readers of the feed that race with writers see every entry once, and each run in order (HE-S1)', async () => {
    const { store, bench, spread } = await open(shards)
    let isOver = false
    const follow = async (): Promise<Change[]> => {
      const seen: Change[] = []
      for (;;) {
        const isLast = isOver
        const some = await store.changes(seen.length, 17)
        seen.push(...some)
        if (isLast && some.length === 0) return seen
      }
    }
    const write = async (session: string): Promise<void> => {
      const lease = { session, token: 1 }
      for (let round = 0; round < 20; round += 1) {
        // Beside those that the feed lists, in the same flush, is one that it does not.
        const runs = [...spread(3, { lease, feed: true }), ...spread(1, { lease, feed: false })]
        await store.start(runs)
        await store.commit(runs.map(({ id }) => bench.transition({ runId: id, lease, seq: 1 })))
      }
    }
    const readers = [follow(), follow(), follow()]
    await Promise.all(['a', 'b', 'c', 'd'].map(write))
    isOver = true
    const all = await Promise.all(readers)
    // A reader that met another one at the sequencer got what had positions then: its next call gets the rest.
    for (const seen of all) {
      for (let some = await store.changes(seen.length, 17); some.length > 0;) {
        seen.push(...some)
        some = await store.changes(seen.length, 17)
      }
    }
    const [first, ...others] = all
    expect(first?.map(({ position }) => position)).toEqual(Array.from({ length: 480 }, (_, index) => index + 1))
    for (const other of others) expect(other).toEqual(first)
    const seqs = new Map<string, number>()
    for (const { runId, entry } of first ?? []) {
      expect(entry.seq).toBe((seqs.get(runId) ?? 0) + 1)
      seqs.set(runId, entry.seq)
    }
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('what a dead session held is taken over wherever it lies, no more at once than asked (HE-X1)', async () => {
    const { store, clock, bench, spread } = await open(shards)
    await bench.beat('dead')
    await bench.beat('alive', { leaseMs: 1e9 })
    const lost = spread(20, { lease: { session: 'dead', token: 1 } })
    const late = spread(20, { lease: { session: 'alive', token: 1 }, leaseMs: 100 })
    const over = spread(20, { timeoutMs: 100 })
    const kept = spread(20, { lease: { session: 'alive', token: 1 }, timeoutMs: 100 })
    await store.start([...lost, ...late, ...over, ...kept])
    expect(await bench.rescue()).toMatchObject({ sessionsEnded: 0, takenOver: [], ended: [], more: false })
    await clock.advance(40_000)
    const taken: { readonly runId: string }[] = []
    for (let isMore = true, sessions = 1; isMore; sessions = 0) {
      const { sessionsEnded, takenOver, ended, more } = await bench.rescue({ limit: 7 })
      expect(takenOver.length + ended.length).toBeLessThanOrEqual(7)
      expect(sessionsEnded).toBe(sessions)
      taken.push(...takenOver, ...ended)
      isMore = more
    }
    expect(taken.map(({ runId }) => runId).toSorted()).toEqual(idsOf([...lost, ...late, ...over]))
    expect(await bench.rescue()).toMatchObject({
      takenOver: [],
      ended: [],
      more: false,
      next: clock.now() + 1e9 - 40_000,
    })
  })

  it('a beat reports what its session holds wherever it lies (HE-X1)', async () => {
    const { store, clock, bench, spread } = await open(shards)
    await bench.beat('me')
    const lease = { session: 'me', token: 1 }
    const held = spread(20, { lease, timeoutMs: 10, leaseMs: 10 })
    const unknownLeases = spread(20, { lease })
    const foreign = spread(20, { lease: { session: 'you', token: 1 } })
    await store.start([...held, ...unknownLeases, ...foreign])
    await clock.advance(20)
    const claims = [...held, ...foreign].map(({ id }) => ({ runId: id, token: 1, extendMs: 500 }))
    const nobodys = { runId: 'nobody', token: 1, extendMs: 500 }
    const answer = await bench.beat('me', { held: [...claims, nobodys] })
    expect(answer.lost).toEqual([...foreign.map(({ id }) => id), 'nobody'])
    expect(answer.unknownLeases.map(({ runId }) => runId)).toEqual(idsOf(unknownLeases))
    expect(answer.timedOut).toEqual(idsOf(held))
    const deadlines = (await store.get([...held, ...foreign].map(({ id }) => id))).map((run) => run?.deadline)
    expect(deadlines).toEqual([...held.map(() => clock.now() + 500), ...foreign.map(() => null)])
  })

  it('lists are merged, newest first, page by page, and counts are added up (HE-S1)', async () => {
    const { store, spread } = await open(shards)
    const runs = spread(40, { tags: ['red'] })
    await store.start(runs)
    const newestFirst = idsOf(runs).toReversed()
    for (const filter of [{}, { tag: 'red' }, { ids: newestFirst }]) {
      const pages: string[] = []
      for (let after: string | undefined; ; after = pages.at(-1)) {
        const page = await store.find(filter, after === undefined ? { limit: 9 } : { limit: 9, after })
        pages.push(...page.map(({ id }) => id))
        if (page.length === 0) break
      }
      expect(pages).toEqual(newestFirst)
      expect(await store.count(filter, 1_000)).toBe(40)
      expect(await store.count(filter, 7)).toBe(7)
    }
  })
})

describe('a claim over 16 shards', () => {
  it('ends at the shard in which it is full, and takes what is in all of them if it wants that much', async () => {
    const statements: string[] = []
    const { store, clock } = await openTestStore({
      shards: 16,
      distributed: true,
      onStatement: (name) => void statements.push(name),
    })
    opened.push(store)
    await store.migrate()
    const bench = createContractBench({ store, clock })
    const now = (): number => clock.now()
    const random = createSeededRandom(1)
    const ids = createRunIds({ clock: { now, monotonic: now, after: () => () => undefined }, random })
    const made = Array.from({ length: 32 }, (_, index) => bench.newRun({ id: ids.next(index % 16), shard: index % 16 }))
    await store.start(made)
    const asked = (): number => statements.splice(0).filter((name) => name === 'claim.lease').length
    asked()
    const one = await bench.claim({ limit: 1 })
    expect([one.runs.length, one.more, asked()]).toEqual([1, true, 1])
    const rest = await bench.claim({ limit: 100 })
    expect([rest.runs.length, rest.more, asked()]).toEqual([31, false, 16])
    expect(idsOf([...one.runs, ...rest.runs])).toEqual(idsOf(made))
  })
})
