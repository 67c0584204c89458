// The rules of every topic, with either delivery: ids are known, order is kept, and nothing is deleted too early.

import assert from 'node:assert/strict'
import { prices } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import {
  expectAsleep,
  expectSound,
  jobs,
  messages,
  news,
  on,
  parkWatching,
  outbound,
  sentIds,
  subscribed,
  publish,
} from '../exchanges.ts'
import * as ask from '../requests.ts'

const dayMs = 24 * 60 * 60 * 1_000

export const topicCases: readonly ContractCase[] = [
  {
    name: 'a broadcast that is sent twice counts once, and gets the first answer, whichever runs wait by then',
    async run(bench) {
      for (const topic of [prices, jobs]) {
        const waiter = await parkWatching(bench, [on(topic)])
        assert.deepEqual(await publish(bench, 'a', topic), { outcome: 'delivered', runs: 1 })
        const late = await bench.hold()
        await bench.commit(late, { outbound: outbound({ watches: [on(topic)] }) })
        const again = { outcome: 'delivered', runs: 1, repeated: true }
        assert.deepEqual(await publish(bench, 'a', topic, { data: '"changed"' }), again)
        assert.equal((await bench.run(waiter.runId)).inbox, 1)
        assert.deepEqual(await bench.mailbox(late.runId), [])
        await bench.store.commit([bench.transition(late, { append: [ending('failed')], status: 'failed' })])
        await bench.control(waiter.runId, ask.cancelNow)
      }
    },
  },
  {
    name: 'what waits in a queue, was taken, or has expired is still known to who sends it again',
    async run(bench) {
      const given = bench.broadcast({ id: 'a', topic: jobs, expiresInMs: 1_000 })
      const repeated = { outcome: 'queued', runs: 0, repeated: true }
      assert.deepEqual(await bench.store.deliver([given, given]), [{ outcome: 'queued', runs: 0 }, repeated])
      assert.deepEqual(await subscribed(bench, jobs), ['a'])
      assert.deepEqual(await bench.deliver(given), repeated)
      await bench.clock.advance(2_000)
      assert.deepEqual(await bench.deliver(given), repeated)
      assert.deepEqual(await subscribed(bench, jobs), [])
    },
  },
  {
    name: 'an id is known in its own topic only',
    async run(bench) {
      const other = { ...prices, name: 'other' }
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'queued', runs: 0 })
      assert.deepEqual(await publish(bench, 'a', other), { outcome: 'queued', runs: 0 })
    },
  },
  {
    name: 'a topic knows what was sent to it for a day, and forgets it some time after that',
    async run(bench) {
      const repeated = { outcome: 'queued', runs: 0, repeated: true }
      await publish(bench, 'a', prices)
      await bench.clock.advance(dayMs)
      await publish(bench, 'b', prices)
      assert.deepEqual(await publish(bench, 'a', prices), repeated)
      await bench.clock.advance(1)
      await publish(bench, 'c', prices)
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'queued', runs: 0 })
      assert.deepEqual(await publish(bench, 'b', prices), repeated)
    },
  },
  {
    name: 'what is sent again after its topic has forgotten it reaches those who still have the first',
    async run(bench) {
      const waiter = await parkWatching(bench, [on(prices)])
      await publish(bench, 'a', prices)
      await bench.clock.advance(dayMs + 1)
      await publish(bench, 'b', prices)
      assert.deepEqual(await publish(bench, 'a', prices, { data: '2' }), { outcome: 'delivered', runs: 1 })
      const [first, , again] = await bench.mailbox(waiter.runId)
      assert.deepEqual([first?.position, again?.position, again?.data], [1, 3, '2'])
      await expectSound(bench)
    },
  },
  {
    name: 'a topic forgets nothing that it retains, and nothing that waits in a queue',
    async run(bench) {
      const long = { ...news, retainMs: 3 * dayMs }
      await publish(bench, 'kept', long)
      await publish(bench, 'open', jobs)
      await bench.clock.advance(2 * dayMs)
      await publish(bench, 'next', long)
      await publish(bench, 'next', jobs)
      assert.deepEqual(await subscribed(bench, long), ['kept', 'next'])
      assert.deepEqual(await subscribed(bench, jobs), ['open'])
    },
  },
  {
    name: 'messages and broadcasts of one batch arrive in their order, and are answered in it',
    async run(bench) {
      const { store, message, broadcast } = bench
      const waiter = await parkWatching(bench, [on(prices)])
      const worker = await parkWatching(bench, [on(jobs)])
      const messages = [message(waiter.runId, { id: 'l1' }), message(waiter.runId, { id: 'l2' })] as const
      const answers = await store.deliver([
        messages[0],
        broadcast({ id: 'b1' }),
        broadcast({ id: 'j1', topic: jobs }),
        messages[1],
        messages[0],
        broadcast({ id: 'b2' }),
        broadcast({ id: 'j2', topic: jobs }),
        message(bench.newRun().id),
        broadcast({ id: 'b1' }),
      ])
      assert.deepEqual(answers, [
        { outcome: 'delivered' },
        { outcome: 'delivered', runs: 1 },
        { outcome: 'delivered', runs: 1 },
        { outcome: 'queued' },
        { outcome: 'delivered', repeated: true },
        { outcome: 'delivered', runs: 1 },
        { outcome: 'queued', runs: 0 },
        { outcome: 'target-not-found' },
        { outcome: 'delivered', runs: 1, repeated: true },
      ])
      assert.deepEqual(await sentIds(bench, waiter.runId), ['l1', 'b1', 'l2', 'b2'])
      assert.deepEqual(await sentIds(bench, worker.runId), ['j1'])
      assert.deepEqual(await subscribed(bench, jobs), ['j2'])
    },
  },
  {
    name: 'waits on topics and runs of one name are not taken for one another',
    async run(bench) {
      const target = await bench.hold()
      const waiter = await parkWatching(bench, [on({ ...prices, name: target.runId })])
      await bench.commit(target, { append: [ending('succeeded')], status: 'succeeded' })
      await expectAsleep(bench, waiter.runId)
      await publish(bench, 'a', { ...prices, name: target.runId })
      assert.deepEqual(await messages(bench, waiter.runId), [['broadcast', target.runId, { price: 12 }]])
    },
  },
  {
    name: 'a refused transition subscribes no run and takes nothing from a queue',
    async run(bench) {
      await publish(bench, 'a', jobs)
      const held = await bench.hold()
      const watches = [on(jobs), on(prices)]
      const stale = bench.transition({ ...held, seq: 9 }, { outbound: outbound({ watches }) })
      assert.deepEqual(await bench.send(stale), { outcome: 'refused', reason: 'stale' })
      assert.deepEqual(await publish(bench, 'p', prices), { outcome: 'queued', runs: 0 })
      assert.equal((await bench.run(held.runId)).inbox, 0)
      assert.deepEqual(await subscribed(bench, jobs), ['a'])
    },
  },
  {
    name: 'a subscription whose answer was lost and that is sent again takes nothing more from a queue',
    async run(bench) {
      await publish(bench, 'a', jobs)
      await publish(bench, 'b', jobs)
      const held = await bench.hold()
      const given = bench.transition(held, { append: [waiting()], outbound: outbound({ watches: [on(jobs)] }) })
      await bench.send(given)
      await bench.send(given)
      assert.deepEqual(await sentIds(bench, held.runId), ['a'])
      assert.deepEqual(await subscribed(bench, jobs), ['b'])
    },
  },
]
