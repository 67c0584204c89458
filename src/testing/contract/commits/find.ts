// Finding runs: every filter, pages that neither overlap nor leave anything out, and counts that stop at their bound.

import assert from 'node:assert/strict'
import { stateInvariants } from '../../../core/invariants/check.ts'
import type { RunFilter } from '../../../store.ts'
import { ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

/** Asserts that these are found, newest first, and counted. */
async function expectFound({ store }: ContractBench, filter: RunFilter, expected: readonly string[]): Promise<void> {
  const what = JSON.stringify(filter)
  // By id, which within a millisecond and between shards is not the order of the starts.
  const newestFirst = expected.toSorted().toReversed()
  assert.deepEqual(ids(await store.find(filter, { limit: 100 })), newestFirst, what)
  assert.equal(await store.count(filter, 100), expected.length, what)
}

export const findCases: readonly ContractCase[] = [
  {
    name: 'SW-O3 HE-S1 runs are found by everything that their start said of them',
    async run(bench) {
      const { clock, start } = bench
      const from = clock.now()
      const a = await start({ type: 'billing.pay', key: 'k', idempotencyKey: 'i', tags: ['red', 'eu'] })
      await clock.advance(10)
      const b = await start({ type: 'billing.refund', version: 2, key: 'k', parentId: a.id, tags: ['red'] })
      await clock.advance(10)
      const c = await start({ type: 'billing_pay', idempotencyKey: 'i', parentId: a.id })
      await expectFound(bench, {}, [c.id, b.id, a.id])
      await expectFound(bench, { ids: [a.id, c.id, 'nobody', a.id] }, [c.id, a.id])
      await expectFound(bench, { types: ['billing.pay', 'billing.refund', 'other'] }, [b.id, a.id])
      await expectFound(bench, { typePrefix: 'billing.' }, [b.id, a.id])
      await expectFound(bench, { key: 'k' }, [b.id, a.id])
      await expectFound(bench, { idempotencyKey: 'i' }, [c.id, a.id])
      await expectFound(bench, { tag: 'red' }, [b.id, a.id])
      await expectFound(bench, { tag: 'eu' }, [a.id])
      await expectFound(bench, { tag: 'e' }, [])
      await expectFound(bench, { parentId: a.id }, [c.id, b.id])
      await expectFound(bench, { createdFrom: from + 10 }, [c.id, b.id])
      await expectFound(bench, { createdBefore: from + 10 }, [a.id])
      await expectFound(bench, { createdFrom: from + 10, createdBefore: from + 20 }, [b.id])
    },
  },
  {
    name: 'HE-V3 runs that are alive are found by their version before its code is removed',
    async run(bench) {
      const { start, control } = bench
      const [old, done] = [await start({ version: 1 }), await start({ version: 1 })]
      await start({ version: 2 })
      controlled(await control(done.id, ask.cancel), 'done')
      const live = { statuses: ['pending', 'running', 'waiting', 'paused', 'cancelling'] } as const
      await expectFound(bench, { version: 1, ...live }, [old.id])
      await expectFound(bench, { version: 1 }, [done.id, old.id])
    },
  },
  {
    name: 'HE-S1 everything that a filter names must match, and an empty list matches nothing',
    async run(bench) {
      const a = await bench.start({ type: 'a', key: 'k', tags: ['t'] })
      await bench.start({ type: 'b', key: 'k' })
      await bench.start({ type: 'a', tags: ['t'] })
      const all: RunFilter = { ids: [a.id], types: ['a'], typePrefix: 'a', statuses: ['pending'], key: 'k', tag: 't' }
      await expectFound(bench, all, [a.id])
      await expectFound(bench, { ...all, statuses: ['failed'] }, [])
      await expectFound(bench, { ...all, tag: 'other' }, [])
      for (const none of [{ ids: [] }, { types: [] }, { statuses: [] }]) await expectFound(bench, none, [])
      await expectFound(bench, { ...all, parentId: a.id }, [])
      await expectFound(bench, { ...all, idempotencyKey: 'k' }, [])
    },
  },
  {
    name: 'runs are found by their status as it is now',
    async run(bench) {
      const { start, hold, park, control } = bench
      const pending = await start()
      const running = await hold()
      const waits = await hold()
      await park(waits)
      const paused = await start()
      await control(paused.id, ask.pause)
      const cancelling = await hold()
      await control(cancelling.runId, ask.cancel)
      await expectFound(bench, { statuses: ['pending'] }, [pending.id])
      await expectFound(bench, { statuses: ['running'] }, [running.runId])
      await expectFound(bench, { statuses: ['paused', 'waiting'] }, [paused.id, waits.runId])
      await expectFound(bench, { statuses: ['cancelling'] }, [cancelling.runId])
    },
  },
  {
    name: 'what looks like a pattern or like SQL is only text, and case counts',
    async run(bench) {
      const odd = ["o'clock", '100%', 'a_b', '\\', '"; drop table runs; --', '日本語']
      const made: string[] = []
      for (const text of odd) made.push((await bench.start({ type: 'a%b', key: text, tags: [text] })).id)
      for (const [index, text] of odd.entries()) {
        await expectFound(bench, { key: text }, [made[index] as string])
        await expectFound(bench, { tag: text }, [made[index] as string])
      }
      for (const typePrefix of ['a_', 'A', 'a%b%', '%']) await expectFound(bench, { typePrefix }, [])
      for (const typePrefix of ['a%', '']) await expectFound(bench, { typePrefix }, made.toReversed())
    },
  },
  {
    name: 'a tag that is given twice is one tag, and the list comes back as it was given',
    async run(bench) {
      const { id, tags } = await bench.start({ tags: ['b', 'a', 'b'] })
      assert.deepEqual(tags, ['b', 'a', 'b'])
      assert.deepEqual((await bench.run(id)).tags, ['b', 'a', 'b'])
      await expectFound(bench, { tag: 'b' }, [id])
    },
  },
  {
    name: 'pages neither overlap nor leave anything out, also when runs are started between them',
    async run({ store, start }) {
      for (const filter of [{}, { tag: 't' }, { key: 'k' }, { types: ['contract.plain'] }]) {
        const made: string[] = []
        const named = { tags: ['t'], key: 'k', keyScope: 'none' } as const
        for (let count = 0; count < 7; count += 1) made.push((await start(named)).id)
        const expected = ids(await store.find(filter, { limit: 100 }))
        const found: string[] = []
        for (;;) {
          const after = found.at(-1)
          const page = ids(await store.find(filter, { limit: 3, ...(after === undefined ? {} : { after }) }))
          if (page.length === 0) break
          assert.ok(page.length <= 3)
          found.push(...page)
          await start(named)
        }
        assert.deepEqual(found, expected)
        assert.ok(made.every((id) => found.includes(id)))
      }
    },
  },
  {
    name: 'a count stops at its bound',
    async run({ store, start }) {
      for (let count = 0; count < 5; count += 1) await start({ tags: ['t'] })
      for (const filter of [{}, { tag: 't' }]) {
        assert.deepEqual(
          [await store.count(filter, 0), await store.count(filter, 3), await store.count(filter, 5)],
          [0, 3, 5],
        )
        assert.equal(await store.count(filter, 1_000), 5)
      }
      assert.equal(await store.count({ types: ['other'] }, 10), 0)
    },
  },
  {
    name: 'a store that is sound says so of every invariant, each once',
    async run({ store, start }) {
      const { id } = await start({ key: 'k', idempotencyKey: 'i', tags: ['red'] })
      await start({ parentId: id })
      const checked = await store.doctor()
      assert.deepEqual(
        checked.filter(({ offenders }) => offenders.length > 0),
        [],
      )
      const names = checked.map(({ name }) => name)
      for (const { name } of stateInvariants) assert.equal(names.filter((one) => one === name).length, 1, name)
    },
  },
]
