// Topics with `one` delivery: a broadcast goes to exactly one run, now or when the next one waits.

import assert from 'node:assert/strict'
import { prices } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { waiting } from '../drafts.ts'
import {
  expectAsleep,
  expectWoken,
  jobs,
  on,
  parkWatching,
  outbound,
  sentIds,
  subscribed,
  publish,
} from '../exchanges.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

export const queueCases: readonly ContractCase[] = [
  {
    name: 'WC-W2 what is sent to a queue goes to the run that has waited longest, and to no other',
    async run(bench) {
      const waiters: string[] = []
      for (let index = 0; index < 3; index += 1) {
        waiters.push((await parkWatching(bench, [on(jobs)])).runId)
        await bench.clock.advance(1)
      }
      const [first, second, third] = waiters as [string, string, string]
      assert.deepEqual(await publish(bench, 'a', jobs), { outcome: 'delivered', runs: 1 })
      await expectWoken(bench, first, 1)
      await expectAsleep(bench, second)
      await bench.clock.advance(1)
      assert.deepEqual(await publish(bench, 'b', jobs), { outcome: 'delivered', runs: 1 })
      await expectWoken(bench, second, 1)
      await expectAsleep(bench, third)
      assert.deepEqual([await sentIds(bench, first), await sentIds(bench, second)], [['a'], ['b']])
    },
  },
  {
    name: 'a run that got a message from a queue is at its end when it waits again',
    async run(bench) {
      const first = await parkWatching(bench, [on(jobs)])
      await bench.clock.advance(1)
      const second = await parkWatching(bench, [on(jobs)])
      await publish(bench, 'a', jobs)
      await bench.clock.advance(1)
      await parkWatching(bench, [on(jobs)], await bench.take(first.runId))
      await publish(bench, 'b', jobs)
      await publish(bench, 'c', jobs)
      assert.deepEqual(await sentIds(bench, second.runId), ['b'])
      assert.deepEqual(await sentIds(bench, first.runId), ['a', 'c'])
    },
  },
  {
    name: 'a run that watches a queue again keeps its place in it',
    async run(bench) {
      const first = await bench.hold()
      await bench.commit(first, { outbound: outbound({ watches: [on(jobs)] }) })
      await bench.clock.advance(1)
      const second = await parkWatching(bench, [on(jobs)])
      await bench.clock.advance(1)
      await bench.commit(first, { outbound: outbound({ watches: [on(jobs)] }) })
      await publish(bench, 'a', jobs)
      assert.deepEqual(await sentIds(bench, first.runId), ['a'])
      await expectAsleep(bench, second.runId)
    },
  },
  {
    name: 'WC-W2 messages that no run waits for are kept for later subscribers, in order, one each, and these keep their lease',
    async run(bench) {
      for (const id of ['a', 'b']) assert.deepEqual(await publish(bench, id, jobs), { outcome: 'queued', runs: 0 })
      await bench.clock.advance(1_000_000_000)
      const held = await bench.hold()
      const answer = await bench.park(held, { append: [waiting()], outbound: outbound({ watches: [on(jobs)] }) })
      assert.deepEqual([answer.released, answer.inbox], [false, 1])
      assert.deepEqual(await sentIds(bench, held.runId), ['a'])
      assert.deepEqual(await subscribed(bench, jobs), ['b'])
      assert.deepEqual(await subscribed(bench, jobs), [])
    },
  },
  {
    name: 'one that got what was kept does not wait in the queue beyond that',
    async run(bench) {
      await publish(bench, 'a', jobs)
      const served = await bench.hold()
      await bench.commit(served, { outbound: outbound({ watches: [on(jobs)] }) })
      await bench.clock.advance(1)
      const waiter = await parkWatching(bench, [on(jobs)])
      await publish(bench, 'b', jobs)
      assert.deepEqual(await sentIds(bench, served.runId), ['a'])
      assert.deepEqual(await sentIds(bench, waiter.runId), ['b'])
    },
  },
  {
    name: 'no run gets an expired message of a queue, and the next message is delivered',
    async run(bench) {
      await publish(bench, 'short', jobs, { expiresInMs: 1_000 })
      await publish(bench, 'long', jobs, { expiresInMs: 1_001 })
      await bench.clock.advance(1_000)
      assert.deepEqual(await subscribed(bench, jobs), ['long'])
      assert.deepEqual(await subscribed(bench, jobs), [])
    },
  },
  {
    name: 'a queue passes over waiters that are over or were removed: the next one gets it',
    async run(bench) {
      const waiters: string[] = []
      for (let index = 0; index < 3; index += 1) {
        waiters.push((await parkWatching(bench, [on(jobs)])).runId)
        await bench.clock.advance(1)
      }
      const [gone, removed, last] = waiters as [string, string, string]
      controlled(await bench.control(gone, ask.cancel), 'done')
      controlled(await bench.control(removed, ask.remove), 'done')
      assert.deepEqual(await publish(bench, 'a', jobs), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await sentIds(bench, last), ['a'])
      assert.deepEqual(await publish(bench, 'b', jobs), { outcome: 'queued', runs: 0 })
    },
  },
  {
    name: 'a queue and a topic of one name do not mix',
    async run(bench) {
      const queue = { ...prices, delivery: 'one' } as const
      const waiter = await parkWatching(bench, [on(queue)])
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'queued', runs: 0 })
      await expectAsleep(bench, waiter.runId)
      assert.deepEqual(await publish(bench, 'b', queue), { outcome: 'delivered', runs: 1 })
    },
  },
  {
    name: 'WC-C1 a wait on a queue that races with a message never sleeps through it, and no other run gets the message',
    async run(bench) {
      for (let round = 0; round < 15; round += 1) {
        const topic = { ...jobs, name: `jobs-${round}` }
        const [one, other] = [await bench.hold(), await bench.hold()]
        const park = (held: typeof one): Promise<unknown> =>
          bench.park(held, { append: [waiting()], outbound: outbound({ watches: [on(topic)] }) })
        await Promise.all([park(one), publish(bench, 'a', topic), park(other)])
        const rows = await bench.store.get([one.runId, other.runId])
        const got = rows.filter((row) => row?.inbox === 1)
        assert.equal(got.length, 1, 'exactly one got it')
        assert.ok(got[0]?.readiness === 'ready' || got[0]?.readiness === 'leased', 'and is awake')
      }
    },
  },
]
