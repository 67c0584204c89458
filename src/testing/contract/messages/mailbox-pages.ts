// Mailboxes that hold more than one load returns, and loads of a single entry of a journal.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { messagesAtOnce, type Loaded, type LoadRequest } from '../../../store.ts'
import type { ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { step } from '../drafts.ts'

async function load({ store }: ContractBench, request: LoadRequest): Promise<Loaded> {
  const [loaded] = await store.load([request])
  assert.ok(loaded)
  return loaded
}

/** The positions of the loaded messages. */
async function positions(
  bench: ContractBench,
  runId: string,
  named?: LoadRequest['messages'],
): Promise<readonly number[]> {
  const { messages } = await load(bench, {
    runId,
    after: 0,
    limit: 0,
    ...(named === undefined ? {} : { messages: named }),
  })
  return messages.map(({ position }) => position)
}

/** A run with messages of these names, first in first out. */
async function withMessages(bench: ContractBench, names: readonly string[]): Promise<string> {
  const { runId } = await bench.hold()
  await bench.store.deliver(names.map((name) => bench.message(runId, { name })))
  return runId
}

/** The positions of all that a run has unread, page by page: each page is read behind the last position of the one before it. */
async function pages({ store }: ContractBench, runId: string, mostBytes?: number): Promise<readonly number[][]> {
  const read: number[][] = []
  for (let messagesAfter = 0; ;) {
    const [page] = await store.load([{ runId, after: 0, limit: 0, messagesAfter }], mostBytes)
    assert.ok(page)
    const last = page.messages.at(-1)
    if (last === undefined) return read
    assert.ok(last.position > messagesAfter, 'every page moves on')
    read.push(page.messages.map(({ position }) => position))
    if (page.messages.length < messagesAtOnce && page.cut !== true) return read
    messagesAfter = last.position
  }
}

/** The whole numbers from `first` to `last`. */
function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

/** A text that takes 100 bytes in the store. */
const hundredBytes = `"${'x'.repeat(98)}"`

function exposed(name: string, data: string): Draft {
  return { kind: 'exposed', name, meta: { call: `${name}#1` }, data }
}

export const mailboxPageCases: readonly ContractCase[] = [
  {
    name: 'of a mailbox, the first messages of each name that was asked for are read, in the order in which they came',
    async run(bench) {
      const runId = await withMessages(bench, ['a', 'b', 'a', 'c', 'b', 'a', 'a'])
      assert.deepEqual(await positions(bench, runId, { names: ['a'], limit: 2 }), [1, 3])
      assert.deepEqual(await positions(bench, runId, { names: ['b', 'a'], limit: 1 }), [1, 2])
      assert.deepEqual(await positions(bench, runId, { names: ['b', 'a'], limit: 3 }), [1, 2, 3, 5, 6])
      assert.deepEqual(await positions(bench, runId, { names: ['c', 'nobody'], limit: 9 }), [4])
      assert.deepEqual(await positions(bench, runId, { names: [], limit: 9 }), [])
      assert.deepEqual(await positions(bench, runId, { names: ['a'], limit: 0 }), [])
      assert.deepEqual(
        await positions(bench, runId, { names: ['a', 'a'], limit: 2 }),
        [1, 3],
        'a name that comes twice',
      )
    },
  },
  {
    name: 'what was taken makes room for what came after it',
    async run(bench) {
      const held = await bench.hold()
      const messages = ['a', 'a', 'a'].map((name) => bench.message(held.runId, { name }))
      await bench.store.deliver(messages)
      await bench.commit(held, { takes: [messages[0]?.id ?? ''] })
      assert.deepEqual(await positions(bench, held.runId, { names: ['a'], limit: 1 }), [2])
    },
  },
  {
    name: 'each request of a batch gets the messages that it asked for',
    async run(bench) {
      const [one, other] = [await withMessages(bench, ['a', 'b']), await withMessages(bench, ['b', 'a'])]
      const loaded = await bench.store.load([
        { runId: one, after: 0, limit: 1, messages: { names: ['a'], limit: 5 } },
        { runId: other, after: 0, limit: 1 },
        { runId: one, after: 0, limit: 1, messages: { names: ['b'], limit: 5 } },
        { runId: other, after: 0, limit: 1, messages: { names: [], limit: 5 } },
      ])
      assert.deepEqual(
        loaded.map(({ messages }) => messages.map(({ runId, name }) => [runId, name])),
        [
          [[one, 'a']],
          [
            [other, 'b'],
            [other, 'a'],
          ],
          [[one, 'b']],
          [],
        ],
      )
    },
  },
  {
    name: 'of a mailbox with three thousand messages the first thousand come, and the rest as they are taken',
    async run(bench) {
      const held = await bench.hold()
      const messages = Array.from({ length: 3_000 }, (_, index) =>
        bench.message(held.runId, { name: index === 2_999 ? 'rare' : 'common' }),
      )
      for (let from = 0; from < 3_000; from += 500) await bench.store.deliver(messages.slice(from, from + 500))
      const counted = Array.from({ length: messagesAtOnce }, (_, index) => index + 1)
      assert.deepEqual(await positions(bench, held.runId), counted)
      assert.deepEqual(await positions(bench, held.runId, { names: ['rare'], limit: 1 }), [3_000], 'behind the others')
      assert.equal((await positions(bench, held.runId, { names: ['common'], limit: 5_000 })).length, 2_999)
      await bench.commit(held, { takes: messages.slice(0, messagesAtOnce).map(({ id }) => id) })
      assert.deepEqual(
        await positions(bench, held.runId),
        counted.map((position) => position + messagesAtOnce),
      )
    },
  },
  {
    name: 'the messages behind a position are read, of each request behind its own, and names are read from the beginning',
    async run(bench) {
      const held = await bench.hold()
      const messages = ['a', 'b', 'a', 'c', 'b'].map((name) => bench.message(held.runId, { name }))
      await bench.store.deliver(messages)
      await bench.commit(held, { takes: [messages[2]?.id ?? ''] })
      const other = await withMessages(bench, ['a', 'b', 'a'])
      const request = { runId: held.runId, after: 0, limit: 0 }
      const requests: readonly LoadRequest[] = [
        { ...request, messagesAfter: 1 },
        { ...request, runId: other, messagesAfter: 2 },
        { ...request, messagesAfter: 0 },
        { ...request, messagesAfter: 4 },
        { ...request, messagesAfter: 3 },
        { ...request, messagesAfter: 5 },
        { ...request, messagesAfter: 1_000_000 },
        request,
        { ...request, messagesAfter: 1, messages: { names: ['a'], limit: 5 } },
        { ...request, messagesAfter: 1, messages: { names: [], limit: 5 } },
      ]
      const expected = [[2, 4, 5], [3], [1, 2, 4, 5], [5], [4, 5], [], [], [1, 2, 4, 5], [1], []]
      for (const mostBytes of [undefined, 100_000]) {
        const loaded = await bench.store.load(requests, mostBytes)
        assert.deepEqual(
          loaded.map(({ messages }) => messages.map(({ position }) => position)),
          expected,
        )
      }
    },
  },
  {
    name: 'a mailbox of more than two thousand messages is read whole, page after page, each message once and in order',
    async run(bench) {
      const { runId } = await bench.hold()
      const messages = Array.from({ length: 2_050 }, () => bench.message(runId, { data: hundredBytes }))
      for (let from = 0; from < messages.length; from += 500)
        await bench.store.deliver(messages.slice(from, from + 500))
      const byCount = [range(1, 1_000), range(1_001, 2_000), range(2_001, 2_050)]
      assert.deepEqual(await pages(bench, runId), byCount)
      assert.deepEqual(await pages(bench, runId, 1_000_000), byCount, 'a bound that no page reaches')
      assert.deepEqual(
        await pages(bench, runId, 60_000),
        [range(1, 600), range(601, 1_200), range(1_201, 1_800), range(1_801, 2_050)],
        'a bound that ends pages before they are full',
      )
    },
  },
  {
    name: 'a heavy mailbox is read whole, page after page, however small the bound is',
    async run(bench) {
      const { runId } = await bench.hold()
      await bench.store.deliver(range(1, 20).map(() => bench.message(runId, { data: hundredBytes })))
      assert.deepEqual(
        await pages(bench, runId, 1),
        range(1, 20).map((position) => [position]),
        'one comes at any size',
      )
      assert.deepEqual(await pages(bench, runId, 450), [range(1, 5), range(6, 10), range(11, 15), range(16, 20)])
      assert.deepEqual(await pages(bench, runId, 1_200), [range(1, 12), range(13, 20)])
    },
  },
  {
    name: 'the last entry of a kind and name is found, wherever it stands',
    async run(bench) {
      const held = await bench.hold()
      const append = [exposed('total', '1'), exposed('total', '2'), exposed('other', '3'), step('total', '4'), step()]
      await bench.commit(held, { append })
      const latest = async (kind: Draft['kind'], name: string): Promise<readonly (string | null)[]> => {
        const wanted = { kind, name }
        const { entries } = await load(bench, { runId: held.runId, after: 99, limit: 0, latest: wanted })
        return entries.map(({ seq, data }) => `${seq} ${data ?? ''}`)
      }
      assert.deepEqual(await latest('exposed', 'total'), ['3 2'])
      assert.deepEqual(await latest('exposed', 'other'), ['4 3'])
      assert.deepEqual(await latest('step-succeeded', 'total'), ['5 4'])
      assert.deepEqual(await latest('exposed', 'nothing'), [])
      await bench.commit(held, { append: [exposed('total', '5')] })
      assert.deepEqual(await latest('exposed', 'total'), ['7 5'])
    },
  },
  {
    name: 'the last entry of a kind is found for each of a batch, beside pages of journals',
    async run(bench) {
      const [a, b] = [await bench.hold(), await bench.hold()]
      await bench.commit(a, { append: [exposed('total', '1'), step()] })
      await bench.commit(b, { append: [step(), exposed('total', '2')] })
      const latest = { kind: 'exposed', name: 'total' } as const
      const loaded = await bench.store.load([
        { runId: b.runId, after: 0, limit: 5, latest },
        { runId: a.runId, after: 0, limit: 2 },
        { runId: a.runId, after: 0, limit: 5, latest },
        { runId: bench.newRun().id, after: 0, limit: 5, latest },
      ])
      assert.deepEqual(
        loaded.map(({ entries }) => entries.map(({ seq, data }) => [seq, data])),
        [
          [[3, '2']],
          [
            [1, '{"order":42}'],
            [2, '1'],
          ],
          [[2, '1']],
          [],
        ],
      )
    },
  },
]
