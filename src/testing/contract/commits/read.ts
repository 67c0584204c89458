// Reads: pages, rows and lists. An answer does not change later, and changing it does not change the store.

import assert from 'node:assert/strict'
import type { RunFilter } from '../../../store.ts'
import { ids, spoil } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, everyKind, step } from '../drafts.ts'

export const readCases: readonly ContractCase[] = [
  {
    name: 'a journal is read in pages that neither overlap nor leave anything out',
    async run({ store, hold, commit }) {
      const held = await hold()
      await commit(held, { append: Array.from({ length: 9 }, (_, index) => step(`s#${index}`)) })
      const page = async (after: number, limit: number): Promise<readonly number[]> => {
        const [loaded] = await store.load([{ runId: held.runId, after, limit }])
        return loaded?.entries.map(({ seq }) => seq) ?? []
      }
      assert.deepEqual(await page(0, 4), [1, 2, 3, 4])
      assert.deepEqual(await page(4, 4), [5, 6, 7, 8])
      assert.deepEqual(await page(8, 4), [9, 10])
      assert.deepEqual(await page(10, 4), [])
      assert.deepEqual(await page(99, 4), [])
      assert.deepEqual(await page(0, 0), [])
    },
  },
  {
    name: 'many are loaded at once, in order, the same run twice and one that does not exist among them',
    async run({ store, hold, start, newRun, commit, deliver, message }) {
      const a = await hold()
      const b = await start()
      await commit(a, { append: [step('x'), step('y')] })
      await deliver(message(b.id))
      const loaded = await store.load([
        { runId: a.runId, after: 2, limit: 5 },
        { runId: newRun().id, after: 0, limit: 5 },
        { runId: b.id, after: 0, limit: 5 },
        { runId: a.runId, after: 0, limit: 1 },
      ])
      assert.deepEqual(
        loaded.map(({ entries, messages }) => [entries.map(({ seq, name }) => [seq, name]), messages.length]),
        [
          [[[3, 'y']], 0],
          [[], 0],
          [[[1, null]], 1],
          [[[1, null]], 0],
        ],
      )
      assert.deepEqual(await store.load([]), [])
    },
  },
  {
    name: 'rows are read in the order in which they are asked for, and a missing one leaves its place empty',
    async run({ store, start, newRun }) {
      const [a, b] = [await start(), await start()]
      assert.deepEqual(await store.get([b.id, newRun().id, a.id, b.id]), [b, undefined, a, b])
      assert.deepEqual(await store.get([]), [])
    },
  },
  {
    name: 'runs are found newest first, by type, by status and by both, up to a limit',
    near: true,
    async run({ store, hold, start, commit }) {
      const done = await hold({ type: 'a' })
      await commit(done, { append: [ending('succeeded')], status: 'succeeded' })
      const pendingB = await start({ type: 'b' })
      const pendingA = await start({ type: 'a', version: 2 })
      const failed = await hold({ type: 'b' })
      await commit(failed, { append: [ending('failed')], status: 'failed' })
      const found = async (filter: RunFilter, limit = 10): Promise<readonly string[]> =>
        ids(await store.find(filter, { limit }))
      const all = [failed.runId, pendingA.id, pendingB.id, done.runId]
      assert.deepEqual(await found({}), all)
      assert.deepEqual(await found({}, 2), all.slice(0, 2))
      assert.deepEqual(await found({}, 0), [])
      assert.deepEqual(await found({ types: ['a'] }), [pendingA.id, done.runId])
      assert.deepEqual(await found({ types: ['a'] }, 1), [pendingA.id])
      assert.deepEqual(await found({ statuses: ['pending'] }), [pendingA.id, pendingB.id])
      assert.deepEqual(await found({ types: ['b'], statuses: ['failed'] }), [failed.runId])
      assert.deepEqual(await found({ types: ['c'] }), [])
      assert.deepEqual(await store.find({ types: ['a'], statuses: ['pending'] }, { limit: 10 }), [pendingA])
    },
  },
  {
    name: 'what was handed out does not change when the run moves on',
    async run({ store, start, take, commit, deliver, message, run, journal, mailbox }) {
      const begun = await start({ feed: true })
      const seen = [
        begun,
        await run(begun.id),
        await journal(begun.id),
        await mailbox(begun.id),
        await store.changes(0, 9),
      ]
      const copy = structuredClone(seen)
      const held = await take(begun.id)
      await deliver(message(begun.id))
      await commit(held, { append: [step(), ending('succeeded')], status: 'succeeded' })
      assert.deepEqual(seen, copy)
    },
  },
  {
    name: 'changing an answer changes nothing in the store',
    async run({ store, hold, commit, deliver, message, run, journal, mailbox, newRun, claim }) {
      const held = await hold()
      await commit(held, { append: structuredClone(everyKind) })
      await deliver(message(held.runId))
      const look = async (): Promise<unknown[]> => [
        await run(held.runId),
        await journal(held.runId),
        await mailbox(held.runId),
        await store.find({}, { limit: 10 }),
      ]
      const before = structuredClone(await look())
      spoil(await look())
      assert.deepEqual(await look(), before)
      const other = newRun()
      spoil(await store.start([other]))
      assert.equal((await run(other.id)).status, 'pending')
      spoil(await claim())
      assert.equal((await run(other.id)).status, 'running')
    },
  },
]
