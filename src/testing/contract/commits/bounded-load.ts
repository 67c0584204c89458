// One load returns a bounded number of bytes: it ends with the entry that reaches the bound, whichever run that belongs to,
// and the same holds for messages.

import assert from 'node:assert/strict'
import type { Loaded } from '../../../store.ts'
import type { ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { step } from '../drafts.ts'

/** A text that takes this many bytes in the store. */
const text = (bytes: number): string => `"${'x'.repeat(bytes - 2)}"`

function seqs(loaded: readonly Loaded[]): readonly (readonly number[])[] {
  return loaded.map(({ entries }) => entries.map(({ seq }) => seq))
}

/** Runs whose entries after the first have 100 bytes each. */
async function heavyRuns({ hold, commit }: ContractBench, ...lengths: readonly number[]): Promise<readonly string[]> {
  const ids: string[] = []
  for (const length of lengths) {
    const held = await hold({ first: { kind: 'started', name: null, meta: null, data: text(100) } })
    const append = Array.from({ length: length - 1 }, (_, index) => step(`s${index}`, text(100)))
    if (append.length > 0) await commit(held, { append })
    ids.push(held.runId)
  }
  return ids
}

export const boundedLoadCases: readonly ContractCase[] = [
  {
    name: 'a load ends with the entry that reaches its bound, and who is behind gets nothing',
    async run(bench) {
      const { store } = bench
      const [a = '', b = '', c = ''] = await heavyRuns(bench, 3, 20, 2)
      const requests = [a, b, c].map((runId) => ({ runId, after: 0, limit: 100 }))
      const counts = async (mostBytes?: number): Promise<readonly number[]> =>
        seqs(await store.load(requests, mostBytes)).map(({ length }) => length)
      assert.deepEqual(await counts(), [3, 20, 2])
      assert.deepEqual(await counts(2_500), [3, 20, 2])
      assert.deepEqual(await counts(2_401), [3, 20, 2])
      assert.deepEqual(await counts(2_400), [3, 20, 1])
      assert.deepEqual(await counts(2_300), [3, 20, 0])
      assert.deepEqual(await counts(1_501), [3, 13, 0])
      assert.deepEqual(await counts(301), [3, 1, 0])
      assert.deepEqual(await counts(300), [3, 0, 0])
      assert.deepEqual(await counts(1), [1, 0, 0], 'one comes at any size')
      const [first, second] = await store.load(requests, 1_501)
      assert.deepEqual(seqs([first, second] as readonly Loaded[])[1], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
      assert.deepEqual(second?.entries[12]?.data, text(100), 'what is handed out is whole')
    },
  },
  {
    name: 'a long journal is read whole, page after page, however small the bound is',
    async run(bench) {
      const { store, journal } = bench
      const [runId = ''] = await heavyRuns(bench, 30)
      const read: unknown[] = []
      for (let pages = 0; read.length < 30; pages += 1) {
        assert.ok(pages < 30, 'every load moves on')
        const [page] = await store.load([{ runId, after: read.length, limit: 12 }], 450)
        read.push(...(page?.entries ?? []))
      }
      assert.deepEqual(read, await journal(runId))
    },
  },
  {
    name: 'bytes are counted, not characters, and what has no payload weighs nothing',
    async run({ store, hold, commit }) {
      const held = await hold({ first: { kind: 'started', name: null, meta: null, data: '"éé"' } })
      await commit(held, { append: [{ kind: 'crashed', name: null, meta: { session: 's', crashes: 1 }, data: null }] })
      await commit(held, { append: [step('last', '"日本"')] })
      const read = async (mostBytes: number): Promise<number | undefined> =>
        (await store.load([{ runId: held.runId, after: 0, limit: 10 }], mostBytes))[0]?.entries.length
      assert.deepEqual([await read(6), await read(7), await read(14), await read(15)], [1, 3, 3, 3])
    },
  },
  {
    name: 'messages are bounded in the same way, apart from entries, and the answer says that there may be more',
    async run({ store, hold, deliver, message }) {
      const [a, b] = [await hold(), await hold()]
      for (const { runId } of [a, b]) {
        for (const name of ['x', 'y', 'x', 'z', 'x', 'y', 'x', 'x', 'x', 'x']) {
          await deliver(message(runId, { name, data: text(100) }))
        }
      }
      const read = async (mostBytes: number | undefined, names?: readonly string[]): Promise<unknown> => {
        const messages = names === undefined ? {} : { messages: { names, limit: 5 } }
        const requests = [a, b].map(({ runId }) => ({ runId, after: 0, limit: 1, ...messages }))
        const loaded = await store.load(requests, mostBytes)
        return loaded.map(({ messages, cut }) => [messages.map(({ position }) => position), cut])
      }
      const all = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
      assert.deepEqual(await read(undefined), [
        [all, undefined],
        [all, undefined],
      ])
      assert.deepEqual(await read(2_001), [
        [all, undefined],
        [all, undefined],
      ])
      assert.deepEqual(await read(1_250), [
        [all, undefined],
        [[1, 2, 3], true],
      ])
      assert.deepEqual(await read(350), [
        [[1, 2, 3, 4], true],
        [[], true],
      ])
      assert.deepEqual(await read(10_000, ['y', 'x']), [
        [[1, 2, 3, 5, 6, 7, 8], undefined],
        [[1, 2, 3, 5, 6, 7, 8], undefined],
      ])
      assert.deepEqual(await read(850, ['y', 'x']), [
        [[1, 2, 3, 5, 6, 7, 8], undefined],
        [[1, 2], true],
      ])
      assert.deepEqual(await read(300, ['z', 'y']), [
        [[2, 4, 6], true],
        [[], true],
      ])
      assert.deepEqual(await read(150, ['z']), [
        [[4], undefined],
        [[4], true],
      ])
      assert.deepEqual(await read(50, []), [
        [[], undefined],
        [[], undefined],
      ])
    },
  },
]
