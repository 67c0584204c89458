// The bounds on unread messages. A refused message changes nothing and its id is not known; the engine's own messages are
// never refused.

import assert from 'node:assert/strict'
import type { TopicRules } from '../../../core/model/topic.ts'
import type { WaitTarget } from '../../../core/model/wait-target.ts'
import { atOnce, prices, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import {
  endOf,
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
import { dead } from './unread-messages.ts'
import * as ask from '../requests.ts'

const full = { outcome: 'full' }
const queued = { outcome: 'queued' }
const over = { append: [ending('succeeded')], status: 'succeeded' } as const

/** Sends signals of those ids to a run with this bound on unread messages. */
async function send(bench: ContractBench, runId: string, mostUnread: number, sent: readonly string[]) {
  const answers = await bench.store.deliver(sent.map((id) => bench.message(runId, { id, mostUnread })))
  return answers.map(({ outcome }) => outcome)
}

/** A topic with this bound on subscribers. */
function bounded(topic: TopicRules, mostSubscribers: number): WaitTarget {
  return { kind: 'topic', ...topic, mostSubscribers }
}

/** A held run that begins to watch this. */
async function watching(bench: ContractBench, watched: WaitTarget, given?: Held): Promise<Held> {
  const held = given ?? (await bench.hold())
  await bench.commit(held, { append: [waiting()], outbound: outbound({ watches: [watched] }) })
  return held
}

export const quotaCases: readonly ContractCase[] = [
  {
    name: 'a run may begin to wait on any number of bounded topics at once',
    async run(bench) {
      const held = await bench.hold()
      const watches = Array.from({ length: 120 }, (_, n) => bounded({ ...prices, name: `price ${n}` }, 10))
      await bench.commit(held, { append: [waiting()], outbound: outbound({ watches }) })
      for (const n of [0, 60, 119]) await publish(bench, 'a', { ...prices, name: `price ${n}` })
      assert.equal((await bench.mailbox(held.runId)).length, 3)
      await expectSound(bench)
    },
  },
  {
    name: 'of a batch that is more than a run may leave unread, what is too much is refused and the rest arrives',
    async run(bench) {
      const [one, other] = [await bench.hold(), await bench.hold()]
      const messages = ['a', 'b', 'c', 'd'].flatMap((id) => [
        bench.message(one.runId, { id, mostUnread: 2 }),
        bench.message(other.runId, { id, mostUnread: 3 }),
      ])
      const answers = await bench.store.deliver(messages)
      assert.deepEqual(answers, [queued, queued, queued, queued, full, queued, full, full])
      assert.deepEqual(await sentIds(bench, one.runId), ['a', 'b'])
      assert.deepEqual(await sentIds(bench, other.runId), ['a', 'b', 'c'])
      assert.equal((await bench.run(one.runId)).inbox, 2)
      await expectSound(bench)
    },
  },
  {
    name: 'a full mailbox does not keep out the one message that its run sleeps for',
    async run(bench) {
      const held = await bench.hold()
      assert.deepEqual(await send(bench, held.runId, 2, ['a', 'b', 'c']), ['queued', 'queued', 'full'])
      await bench.park(held, { append: [waiting()], parkIf: { inbox: 2, wakeNames: ['paid'] } })
      assert.deepEqual(await send(bench, held.runId, 2, ['d']), ['full'])
      const paid = ['e', 'f'].map((id) => bench.message(held.runId, { id, name: 'paid', mostUnread: 2 }))
      assert.deepEqual(await bench.store.deliver(paid), [{ outcome: 'delivered' }, full])
      assert.deepEqual(await sentIds(bench, held.runId), ['a', 'b', 'e'])
      await expectSound(bench)
    },
  },
  {
    name: 'what was refused is not known: it is taken when there is room, and what was taken is known when there is none',
    async run(bench) {
      const held = await bench.hold()
      assert.deepEqual(await send(bench, held.runId, 2, ['a', 'b', 'c']), ['queued', 'queued', 'full'])
      assert.deepEqual(await bench.deliver(bench.message(held.runId, { id: 'a', mostUnread: 2 })), {
        ...queued,
        repeated: true,
      })
      await bench.commit(held, { takes: ['a'] })
      assert.deepEqual(await send(bench, held.runId, 2, ['c', 'd']), ['queued', 'full'])
      assert.deepEqual(await sentIds(bench, held.runId), ['b', 'c'])
      assert.equal((await bench.run(held.runId)).inbox, 3)
    },
  },
  {
    name: 'only what is unread counts, however many came before and however old one of them is',
    async run(bench) {
      const held = await bench.hold()
      for (let round = 0; round < 5; round += 1) {
        const pair = [`${round}a`, `${round}b`]
        assert.deepEqual(await send(bench, held.runId, 3, pair), ['queued', 'queued'])
        await bench.commit(held, { takes: round === 0 ? ['0b'] : pair })
      }
      assert.deepEqual(await send(bench, held.runId, 3, ['x', 'y', 'z']), ['queued', 'queued', 'full'])
      assert.deepEqual(await sentIds(bench, held.runId), ['0a', 'x', 'y'])
    },
  },
  {
    name: 'of many who send at once, no more get through than there is room for',
    async run(bench) {
      const held = await bench.hold()
      await bench.park(held)
      const answers = await atOnce(20, (index) =>
        bench.store.deliver([bench.message(held.runId, { id: `m${index}`, mostUnread: 7 })], { mayWait: true }),
      )
      const outcomes = answers.flat().map(({ outcome }) => outcome)
      assert.equal(outcomes.filter((outcome) => outcome === 'full').length, 13)
      assert.equal((await bench.mailbox(held.runId)).length, 7)
      assert.equal((await bench.run(held.runId)).inbox, 7)
    },
  },
  {
    name: 'a full mailbox takes what the engine sends: ends, refused children and broadcasts; and what names no bound',
    async run(bench) {
      const held = await bench.hold()
      const watched = await bench.hold()
      await send(bench, held.runId, 1, ['a'])
      const child = bench.child(held.runId, { id: watched.runId })
      await bench.commit(held, {
        append: [waiting()],
        outbound: outbound({ watches: [endOf(watched.runId), on(prices)], starts: [child] }),
      })
      await bench.commit(watched, over)
      assert.deepEqual(await publish(bench, 'news', prices), { outcome: 'delivered', runs: 1 })
      assert.deepEqual(await send(bench, held.runId, 1, ['b']), ['full'])
      assert.deepEqual(await bench.deliver(bench.message(held.runId, { id: 'token:1' })), queued)
      const kinds = (await bench.mailbox(held.runId)).map(({ kind }) => kind)
      assert.deepEqual(kinds, ['signal', 'refused', 'ended', 'broadcast', 'signal'])
      await expectSound(bench)
    },
  },
  {
    name: 'a run that is over answers so, and what has a policy takes its way, however full its mailbox was',
    async run(bench) {
      const held = await bench.hold()
      const live = await bench.hold()
      await send(bench, held.runId, 1, ['a'])
      await send(bench, live.runId, 1, ['a'])
      await bench.commit(held, over)
      const answers = await bench.store.deliver([
        bench.message(live.runId, { id: 'b', mostUnread: 2 }),
        bench.message(held.runId, { id: 'late', policy: dead, mostUnread: 1 }),
        bench.message(live.runId, { id: 'c', mostUnread: 2 }),
      ])
      assert.deepEqual(answers, [queued, { outcome: 'target-terminated', status: 'succeeded' }, full])
      assert.deepEqual(
        (await bench.store.deadLetters({}, { limit: 10 })).map(({ id }) => id),
        ['late'],
      )
      await expectSound(bench)
    },
  },
  {
    name: 'a run that finds no place among the subscribers of a topic is refused, and the others are not harmed',
    async run(bench) {
      const first = await parkWatching(bench, [bounded(prices, 2)])
      const second = await parkWatching(bench, [bounded(prices, 2)])
      const third = await watching(bench, bounded(prices, 2))
      assert.deepEqual(await messages(bench, third.runId), [['refused', prices.name, { subscribers: 2 }]])
      const again = await watching(bench, bounded(prices, 2), third)
      assert.equal((await bench.mailbox(again.runId)).length, 2, 'it is notified each time')
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 2 })
      for (const { runId } of [first, second]) assert.deepEqual(await sentIds(bench, runId), ['a'])
      assert.equal((await bench.mailbox(third.runId)).length, 2)
      await expectSound(bench)
    },
  },
  {
    name: 'of many that subscribe in one batch, as many as there is room for do',
    async run(bench) {
      const held = await atOnce(6, () => bench.hold())
      const changes = { append: [waiting()], outbound: outbound({ watches: [bounded(prices, 4)] }) }
      await bench.store.commit(held.map((one) => bench.transition(one, changes)))
      const refused = await Promise.all(held.map(async ({ runId }) => (await bench.mailbox(runId)).length))
      assert.equal(refused.filter((count) => count === 1).length, 2)
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 4 })
    },
  },
  {
    name: 'who has subscribed may do so again, and who has left or is over takes no place',
    async run(bench) {
      const first = await watching(bench, bounded(prices, 2))
      const second = await watching(bench, bounded(prices, 2))
      await watching(bench, bounded(prices, 2), first)
      assert.deepEqual(await bench.mailbox(first.runId), [])
      await bench.commit(first, { outbound: outbound({ unwatches: [on(prices)] }) })
      const third = await watching(bench, bounded(prices, 2))
      assert.deepEqual(await bench.mailbox(third.runId), [])
      // With several shards nobody looks whether a run of another shard is over.
      if ((bench.store.capabilities.shards ?? 1) > 1) return
      await bench.control(second.runId, ask.cancelNow)
      const fourth = await watching(bench, bounded(prices, 2))
      assert.deepEqual(await bench.mailbox(fourth.runId), [])
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: 2 })
    },
  },
  {
    name: 'who takes what lies in a queue needs no place there, and who was refused has taken nothing',
    async run(bench) {
      await publish(bench, 'a', jobs)
      const waiter = await watching(bench, bounded(jobs, 1))
      assert.deepEqual(await sentIds(bench, waiter.runId), ['a'])
      await parkWatching(bench, [bounded(jobs, 1)])
      const refused = await watching(bench, bounded(jobs, 1))
      assert.deepEqual(await messages(bench, refused.runId), [['refused', jobs.name, { subscribers: 1 }]])
      await publish(bench, 'b', news)
      await parkWatching(bench, [on(prices)])
      await watching(bench, on(news))
      const late = await watching(bench, bounded(news, 1))
      assert.deepEqual(await messages(bench, late.runId), [['refused', news.name, { subscribers: 1 }]])
    },
  },
  {
    name: 'a queue keeps no more untaken messages than its bound, and accepts another when one was taken',
    async run(bench) {
      const bound = { mostKept: 2 }
      const sent = ['a', 'b', 'c'].map((id) => bench.broadcast({ id, topic: jobs, ...bound }))
      const kept = { outcome: 'queued', runs: 0 }
      assert.deepEqual(await bench.store.deliver(sent), [kept, kept, full])
      assert.deepEqual(await publish(bench, 'a', jobs, bound), { ...kept, repeated: true })
      assert.deepEqual(await publish(bench, 'c', jobs, bound), full)
      assert.deepEqual(await subscribed(bench, jobs), ['a'])
      assert.deepEqual(await publish(bench, 'c', jobs, bound), kept)
      assert.deepEqual(await publish(bench, 'd', jobs, bound), full)
      assert.deepEqual(await publish(bench, 'd', jobs), kept, 'who names no bound has none')
      for (const id of ['b', 'c', 'd']) assert.deepEqual(await subscribed(bench, jobs), [id])
      await expectSound(bench)
    },
  },
  {
    name: 'a topic refuses broadcasts beyond its bound, and takes them again when others have aged or expired',
    async run(bench) {
      const bound = { mostKept: 2, expiresInMs: 30_000 }
      const kept = { outcome: 'queued', runs: 0 }
      assert.deepEqual(await publish(bench, 'a', news, { mostKept: 2 }), kept)
      await bench.clock.advance(40_000)
      assert.deepEqual(await publish(bench, 'b', news, bound), kept)
      assert.deepEqual(await publish(bench, 'c', news, bound), full)
      await bench.clock.advance(20_000)
      assert.deepEqual(await publish(bench, 'c', news, bound), kept, 'the first has aged')
      assert.deepEqual(await publish(bench, 'd', news, bound), full)
      await bench.clock.advance(10_000)
      assert.deepEqual(await publish(bench, 'd', news, bound), kept, 'the second has expired')
      assert.deepEqual(await subscribed(bench, news), ['c', 'd'])
    },
  },
  {
    name: 'a topic that retains nothing is never full, nor is one to which an ended run leaves what it has not read',
    async run(bench) {
      for (const id of ['a', 'b', 'c']) {
        assert.deepEqual(await publish(bench, id, prices, { mostKept: 1 }), { outcome: 'queued', runs: 0 })
      }
      await publish(bench, 'x', jobs, { mostKept: 1 })
      const held = await bench.hold()
      const policy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const
      await bench.deliver(bench.message(held.runId, { id: 'y', kind: 'topic-signal', name: jobs.name, policy }))
      await bench.commit(held, over)
      assert.deepEqual(await publish(bench, 'z', jobs, { mostKept: 1 }), full)
      assert.deepEqual(await subscribed(bench, jobs), ['x'])
      assert.equal((await subscribed(bench, jobs)).length, 1)
    },
  },
]
