// Topics with `all` delivery: a broadcast goes to every run that waits on the topic, and to no other.

import assert from 'node:assert/strict'
import { sentId } from '../../../core/model/message.ts'
import { atOnce, prices } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { waiting } from '../drafts.ts'
import {
  expectAsleep,
  expectWoken,
  news,
  on,
  parkWatching,
  outbound,
  sentIds,
  subscribed,
  publish,
} from '../exchanges.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

export const broadcastCases: readonly ContractCase[] = [
  {
    name: 'WC-W3 what is sent to a topic goes to every run that waits on it, and wakes it',
    async run(bench) {
      const waiters = [await parkWatching(bench, [on(prices)]), await parkWatching(bench, [on(prices)])]
      const stranger = await parkWatching(bench, [on({ ...prices, name: 'other' })])
      await bench.clock.advance(4)
      const given = bench.broadcast({ id: 'b' })
      assert.deepEqual(await bench.deliver(given), { outcome: 'delivered', runs: 2 })
      for (const { runId } of waiters) {
        await expectWoken(bench, runId, 1)
        const [message, ...more] = await bench.mailbox(runId)
        assert.ok(message)
        const { id: _, ...rest } = message
        assert.equal(sentId(message), 'b')
        const expected = { runId, kind: 'broadcast', name: 'prices', data: given.data, policy: null, position: 1 }
        assert.deepEqual(rest, { ...expected, at: bench.clock.now() })
        assert.deepEqual(more, [])
      }
      await expectAsleep(bench, stranger.runId)
    },
  },
  {
    name: 'a run that subscribes after a broadcast does not get it, and gets the next one',
    async run(bench) {
      assert.deepEqual(await publish(bench, 'early', prices), { outcome: 'queued', runs: 0 })
      const waiter = await parkWatching(bench, [on(prices)])
      assert.deepEqual(await publish(bench, 'late', prices), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await sentIds(bench, waiter.runId), ['late'])
    },
  },
  {
    name: 'a topic that retains gives those who come in time what was sent before, in order, and the lease is kept',
    async run(bench) {
      await publish(bench, 'a', news)
      await bench.clock.advance(30_000)
      await publish(bench, 'b', news)
      await bench.clock.advance(29_999)
      const held = await bench.hold()
      const answer = await bench.park(held, { append: [waiting()], outbound: outbound({ watches: [on(news)] }) })
      assert.deepEqual([answer.released, answer.inbox], [false, 2])
      assert.deepEqual(await sentIds(bench, held.runId), ['a', 'b'])
      await bench.clock.advance(1)
      assert.deepEqual(await subscribed(bench, news), ['b'], 'a was kept for a minute')
      await bench.clock.advance(30_000)
      assert.deepEqual(await subscribed(bench, news), [])
    },
  },
  {
    name: 'what is retained goes to many, and to each run once although it subscribes again',
    async run(bench) {
      await publish(bench, 'a', news)
      const held = await bench.hold()
      const watches = [on(news), on(news)]
      await bench.commit(held, { outbound: outbound({ watches }) })
      const [message] = await bench.mailbox(held.runId)
      await bench.commit(held, { takes: [message?.id ?? ''] })
      await bench.commit(held, { outbound: outbound({ unwatches: [on(news)] }) })
      await bench.commit(held, { outbound: outbound({ watches }) })
      assert.equal((await bench.run(held.runId)).inbox, 1, 'also one that has taken it')
      assert.deepEqual(await subscribed(bench, news), ['a'])
      await publish(bench, 'b', news)
      assert.deepEqual(await sentIds(bench, held.runId), ['b'])
    },
  },
  {
    name: 'what has expired is retained no more',
    async run(bench) {
      await publish(bench, 'short', news, { expiresInMs: 1_000 })
      await publish(bench, 'long', news, { expiresInMs: 50_000 })
      await bench.clock.advance(999)
      assert.deepEqual(await subscribed(bench, news), ['short', 'long'])
      await bench.clock.advance(1)
      assert.deepEqual(await subscribed(bench, news), ['long'])
    },
  },
  {
    name: 'a run that is busy gets what is sent to its topic into its mailbox, and its next wait is kept',
    async run(bench) {
      const held = await bench.hold()
      await bench.commit(held, { append: [waiting()], outbound: outbound({ watches: [on(prices)] }) })
      const before = await bench.run(held.runId)
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await bench.run(held.runId), { ...before, inbox: 1 })
      assert.equal((await bench.park(held, { append: [] })).released, false)
    },
  },
  {
    name: 'a subscriber stays one for as long as it waits, and gets everything in the order of the topic',
    async run(bench) {
      const waiter = await parkWatching(bench, [on(prices)])
      for (const id of ['c', 'a', 'b']) await publish(bench, id, prices)
      const held = await bench.take(waiter.runId)
      await bench.park(held, { append: [waiting('again')], parkIf: { inbox: 3 } })
      await publish(bench, 'd', prices)
      assert.deepEqual(await sentIds(bench, waiter.runId), ['c', 'a', 'b', 'd'])
      await expectWoken(bench, waiter.runId, 4)
    },
  },
  {
    name: 'a run that has unsubscribed gets nothing, and the others do',
    async run(bench) {
      const held = await bench.hold()
      await bench.commit(held, { outbound: outbound({ watches: [on(prices), on(news)] }) })
      const other = await parkWatching(bench, [on(prices)])
      await bench.commit(held, { outbound: outbound({ unwatches: [on(prices)] }) })
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await bench.mailbox(held.runId), [])
      assert.deepEqual(await sentIds(bench, other.runId), ['a'])
      await publish(bench, 'n', news)
      assert.deepEqual(await sentIds(bench, held.runId), ['n'], 'it is still subscribed to the other topic')
    },
  },
  {
    name: 'subscribers that are over or were removed are passed over and not counted',
    async run(bench) {
      const [gone, removed, waiter] = [
        await parkWatching(bench, [on(prices)]),
        await parkWatching(bench, [on(prices)]),
        await parkWatching(bench, [on(prices)]),
      ]
      controlled(await bench.control(gone.runId, ask.cancel), 'done')
      controlled(await bench.control(removed.runId, ask.remove), 'done')
      const before = await bench.store.get([gone.runId, removed.runId])
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await bench.store.get([gone.runId, removed.runId]), before)
      await expectWoken(bench, waiter.runId, 1)
    },
  },
  {
    name: 'three hundred subscribers are notified by one commit, each once',
    async run(bench) {
      const held = await atOnce(300, () => bench.hold())
      await bench.store.commit(
        held.map((one) =>
          bench.transition(one, {
            append: [waiting()],
            status: 'waiting',
            parkIf: { inbox: 0 },
            outbound: outbound({ watches: [on(prices)] }),
          }),
        ),
      )
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 300 })
      const rows = await bench.store.get(held.map(({ runId }) => runId))
      for (const row of rows) assert.deepEqual([row?.readiness, row?.inbox], ['ready', 1])
    },
  },
  {
    name: 'of what many send at once, all subscribers see the same order, and nothing twice',
    async run(bench) {
      const waiters = [await parkWatching(bench, [on(prices)]), await parkWatching(bench, [on(prices)])] as const
      const sent = Array.from({ length: 12 }, (_, index) => `b${index}`)
      await atOnce(24, (index) => publish(bench, sent[index % 12] as string, prices))
      const order = await sentIds(bench, waiters[0].runId)
      assert.deepEqual(order.toSorted(), sent.toSorted())
      assert.deepEqual(await sentIds(bench, waiters[1].runId), order)
    },
  },
]
