// Topics that nobody uses go, with all that is left of them; what is used stays, and no topic gives a position twice.

import assert from 'node:assert/strict'
import { prices, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { expectSound, jobs, news, on, outbound, parkWatching, publish, sentIds, subscribed } from '../exchanges.ts'
import type { TopicRules } from '../../../core/model/topic.ts'
import * as ask from '../requests.ts'

const dayMs = 24 * 60 * 60 * 1_000

function subscribe(bench: ContractBench, held: Held, topic: TopicRules): Promise<unknown> {
  return bench.commit(held, { outbound: outbound({ watches: [on(topic)] }) })
}

function unsubscribe(bench: ContractBench, held: Held, topic: TopicRules): Promise<unknown> {
  return bench.commit(held, { outbound: outbound({ unwatches: [on(topic)] }) })
}

/** Every topic has rested, and is looked at. */
async function tidy(bench: ContractBench, afterMs = dayMs + 1): Promise<void> {
  await bench.clock.advance(afterMs)
  await bench.chores()
}

const queued = { outcome: 'queued', runs: 0 } as const

export const unusedTopicCases: readonly ContractCase[] = [
  {
    name: 'a topic that begins anew gives no position twice: a run that has what was sent before gets the same id again',
    async run(bench) {
      const others = ['a', 'b', 'c'].map((name) => ({ ...prices, name }))
      const held = await bench.hold()
      for (const [index, topic] of others.entries()) {
        await subscribe(bench, held, topic)
        // Of several that go the one that gave most decides.
        for (let sent = 0; sent <= index; sent += 1) await publish(bench, `${sent}`, topic)
        await unsubscribe(bench, held, topic)
      }
      const before = await sentIds(bench, held.runId)
      for (let round = 0; round < 2; round += 1) {
        await tidy(bench)
        for (const topic of others) {
          await subscribe(bench, held, topic)
          for (const id of ['0', '1']) {
            const answer = await publish(bench, id, topic)
            assert.deepEqual(answer, { outcome: 'delivered', runs: 1 }, 'the topic that had this id is gone')
          }
          await unsubscribe(bench, held, topic)
        }
      }
      const all = await bench.mailbox(held.runId)
      assert.equal(all.length, before.length + 12)
      assert.equal(new Set(all.map(({ id }) => id)).size, all.length)
      await expectSound(bench)
    },
  },
  {
    name: 'a topic on which a live run waits stays, however long nothing is sent to it',
    async run(bench) {
      const waiter = await parkWatching(bench, [on(prices)])
      const worker = await parkWatching(bench, [on(jobs)])
      for (let day = 0; day < 3; day += 1) await tidy(bench)
      for (const topic of [prices, jobs]) {
        assert.deepEqual(await publish(bench, 'a', topic), { outcome: 'delivered', runs: 1 })
      }
      assert.deepEqual([await sentIds(bench, waiter.runId), await sentIds(bench, worker.runId)], [['a'], ['a']])
    },
  },
  {
    name: 'a topic that retains what was sent, or has it for the next that comes, stays; afterwards it goes',
    async run(bench) {
      const long = { ...news, retainMs: 3 * dayMs }
      await publish(bench, 'kept', long)
      await publish(bench, 'open', jobs)
      await publish(bench, 'short', { ...jobs, name: 'short' }, { expiresInMs: 1_000 })
      await tidy(bench)
      await tidy(bench)
      assert.deepEqual(await subscribed(bench, long), ['kept'])
      assert.deepEqual(await subscribed(bench, jobs), ['open'])
      assert.deepEqual(
        await publish(bench, 'short', { ...jobs, name: 'short' }),
        queued,
        'nobody could get it any more',
      )
    },
  },
  {
    name: 'a topic knows what was sent to it for a day, and is gone after that: the same id is another broadcast',
    async run(bench) {
      await publish(bench, 'a', prices)
      await bench.clock.advance(dayMs)
      await bench.chores()
      assert.deepEqual(await publish(bench, 'a', prices), { ...queued, repeated: true })
      await tidy(bench)
      assert.deepEqual(await publish(bench, 'a', prices), queued)
    },
  },
  {
    name: 'waits of runs that ended or were removed keep no topic, however many there are',
    async run(bench) {
      const waiters = [await parkWatching(bench, [on(prices)]), await parkWatching(bench, [on(prices)])]
      const held = await bench.hold()
      await subscribe(bench, held, prices)
      await publish(bench, 'a', prices)
      for (const [index, { runId }] of waiters.entries()) {
        await bench.control(runId, index === 0 ? ask.cancel : ask.remove)
      }
      await unsubscribe(bench, held, prices)
      await tidy(bench)
      await subscribe(bench, held, prices)
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await sentIds(bench, held.runId), ['a', 'a'])
      await expectSound(bench)
    },
  },
  {
    name: 'a run that begins to wait on a topic while that goes, and what is sent to it then, miss nothing',
    async run(bench) {
      for (let round = 0; round < 10; round += 1) {
        const topic = { ...prices, name: `prices-${round}` }
        const held = await bench.hold()
        await subscribe(bench, held, topic)
        await publish(bench, 'a', topic)
        await unsubscribe(bench, held, topic)
        await bench.clock.advance(dayMs + 1)
        await Promise.all([bench.chores(), subscribe(bench, held, topic), bench.chores()])
        const { outcome } = await publish(bench, 'b', topic)
        assert.deepEqual([outcome, await sentIds(bench, held.runId)], ['delivered', ['a', 'b']])
      }
      await expectSound(bench)
    },
  },
]
