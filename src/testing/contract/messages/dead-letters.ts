// Dead letters: unread messages of ended runs can be listed, and each is settled once.

import assert from 'node:assert/strict'
import type { DeadLetterFilter, NewMessage, Page } from '../../../store.ts'
import { atOnce, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import { dead } from './unread-messages.ts'
import { failedRun } from '../requests.ts'

/** The names, as `run:id`, of the letters that are found. */
async function found(
  { store }: ContractBench,
  filter: DeadLetterFilter = {},
  page: Page = { limit: 100 },
): Promise<readonly string[]> {
  return (await store.deadLetters(filter, page)).map(({ runId, id }) => `${runId} ${id}`)
}

function nameOf({ runId, id }: Pick<NewMessage, 'runId' | 'id'>): string {
  return `${runId} ${id}`
}

/** Letters to two runs that are over, the oldest first. */
async function given(bench: ContractBench): Promise<readonly NewMessage[]> {
  const runs = [await failedRun(bench), await failedRun(bench)] as const
  const letters: NewMessage[] = []
  for (let index = 0; index < 6; index += 1) {
    const name = index % 3 === 0 ? 'refunded' : 'approved'
    const letter = bench.message(runs[index % 2] as string, { id: `m ${index}`, name, policy: dead })
    await bench.deliver(letter)
    letters.push(letter)
    await bench.clock.advance(1)
  }
  return letters
}

export const deadLetterCases: readonly ContractCase[] = [
  {
    name: 'dead letters are found the newest first, in pages that neither overlap nor leave anything out',
    async run(bench) {
      const all = (await given(bench)).map(nameOf).toReversed()
      assert.deepEqual(await found(bench), all)
      const pages: string[] = []
      for (let after: string | undefined; ;) {
        const page = await found(bench, {}, { limit: 4, ...(after === undefined ? {} : { after }) })
        pages.push(...page)
        after = page.at(-1)
        if (after === undefined) break
      }
      assert.deepEqual(pages, all)
      assert.deepEqual(await found(bench, {}, { limit: 0 }), [])
    },
  },
  {
    name: 'dead letters of one time are found the last run and id first, and paged through without a gap',
    async run(bench) {
      const runs = [await failedRun(bench), await failedRun(bench)].toSorted()
      const letters = runs.flatMap((runId) => ['b', 'a', 'c'].map((id) => bench.message(runId, { id, policy: dead })))
      await bench.store.deliver(letters.toReversed())
      const all = letters.map(nameOf).toSorted().toReversed()
      assert.deepEqual(await found(bench), all)
      for (const [index, after] of all.entries()) {
        assert.deepEqual(await found(bench, {}, { limit: 2, after }), all.slice(index + 1, index + 3))
      }
    },
  },
  {
    name: 'dead letters are found by the name of their signal and by their run',
    async run(bench) {
      const all = (await given(bench)).toReversed()
      const runId = all[0]?.runId ?? ''
      const expected = (test: (letter: NewMessage) => boolean): readonly string[] => all.filter(test).map(nameOf)
      assert.deepEqual(
        await found(bench, { name: 'refunded' }),
        expected(({ name }) => name === 'refunded'),
      )
      assert.deepEqual(
        await found(bench, { runId }),
        expected((one) => one.runId === runId),
      )
      const both = expected((one) => one.runId === runId && one.name === 'refunded')
      assert.deepEqual(await found(bench, { runId, name: 'refunded' }), both)
      assert.equal(both.length, 1)
      assert.deepEqual(await found(bench, { name: 'refund' }), [])
      assert.deepEqual(await found(bench, { runId: bench.newRun().id }), [])
    },
  },
  {
    name: 'a dead letter is settled once, however many try, and is no longer listed',
    async run(bench) {
      const [first, ...rest] = (await given(bench)) as [NewMessage, ...NewMessage[]]
      const before = await bench.run(first.runId)
      const answers = await atOnce(4, () => bench.store.settleDeadLetter(first, 'retried'))
      assert.deepEqual(answers.filter(Boolean).length, 1)
      assert.equal(await bench.store.settleDeadLetter(first, 'discarded'), false)
      assert.deepEqual(await found(bench), rest.map(nameOf).toReversed())
      assert.deepEqual(await bench.run(first.runId), before)
      const again = { outcome: 'target-terminated', status: 'failed', repeated: true }
      assert.deepEqual(await bench.deliver(first), again, 'its sender gets the answer that it got before')
      assert.equal((await found(bench)).length, rest.length)
    },
  },
  {
    name: 'what is not dead is not settled: a message that lies in a mailbox, was taken or discarded, or that there is not',
    async run(bench) {
      const held = await bench.hold()
      const [unread, taken] = [bench.message(held.runId), bench.message(held.runId, { policy: dead })]
      await bench.store.deliver([unread, taken])
      await bench.commit(held, { takes: [taken.id] })
      for (const letter of [unread, taken, { runId: held.runId, id: 'nothing' }, bench.message(bench.newRun().id)]) {
        assert.equal(await bench.store.settleDeadLetter(letter, 'retried'), false)
      }
      assert.equal((await bench.mailbox(held.runId)).length, 1)
      await bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      assert.equal(await bench.store.settleDeadLetter(unread, 'retried'), false)
    },
  },
  {
    name: 'who pages through dead letters and settles some on the way misses none and sees none twice',
    async run(bench) {
      const all = (await given(bench)).toReversed().map(nameOf)
      const seen: string[] = []
      for (let after: string | undefined; ;) {
        const page = await bench.store.deadLetters({}, { limit: 2, ...(after === undefined ? {} : { after }) })
        const last = page.at(-1)
        if (last === undefined) break
        // The one that says where the next page begins.
        assert.equal(await bench.store.settleDeadLetter(last, 'discarded'), true)
        seen.push(...page.map(nameOf))
        after = nameOf(last)
        assert.ok(seen.length <= all.length, 'a page came twice')
      }
      assert.deepEqual(seen, all)
    },
  },
]
