// Messages that are unread when their run ends, or that come later: they are settled by their policy, in the same commit.

import assert from 'node:assert/strict'
import type { MessagePolicy } from '../../../core/model/topic.ts'
import type { NewMessage } from '../../../store.ts'
import { succeeded, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { endPaths } from '../end-paths.ts'
import {
  endOf,
  expectSound,
  expectWoken,
  jobs,
  messages,
  news,
  on,
  parkWatching,
  outbound,
  subscribed,
} from '../exchanges.ts'
import * as ask from '../requests.ts'
import { failedRun, controlled } from '../requests.ts'

export const dead: MessagePolicy = { onUnread: 'dead-letter' }
const toQueue: MessagePolicy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 }
const toTopic: MessagePolicy = { onUnread: 'broadcast', delivery: 'all', retainMs: news.retainMs }

const over = { append: [ending('succeeded')], status: 'succeeded' } as const

/** A message under the name of a queue, which is passed on to that queue if its run does not read it. */
function job({ message }: ContractBench, runId: string, changes: Partial<NewMessage> = {}): NewMessage {
  return message(runId, { kind: 'topic-signal', name: jobs.name, policy: toQueue, data: '"job"', ...changes })
}

async function deadIds({ store }: ContractBench): Promise<readonly string[]> {
  return (await store.deadLetters({}, { limit: 100 })).map(({ id }) => id)
}

const givenUpAtEveryEnd = endPaths.map((way): ContractCase => ({
  name: `WC-W3 what a run has not read when it ${way.name} is discarded, kept as a dead letter or passed on, as it says`,
  async run(bench) {
    const held = await bench.hold(way.changes)
    const waiter = await parkWatching(bench, [on(jobs)])
    const letter = bench.message(held.runId, { policy: dead })
    await bench.store.deliver([bench.message(held.runId), letter, job(bench, held.runId)])
    const sentAt = bench.clock.now()
    await way.end(bench, held)
    const { status, endedAt, inbox } = await bench.run(held.runId)
    assert.deepEqual([status, inbox], [way.status, 3])
    assert.deepEqual(await bench.mailbox(held.runId), [], 'nothing is left')
    const expected = { ...letter, position: 2, at: sentAt, status, endedAt }
    assert.deepEqual(await bench.store.deadLetters({}, { limit: 10 }), [expected])
    await expectWoken(bench, waiter.runId, 1)
    assert.deepEqual(await messages(bench, waiter.runId), [['broadcast', jobs.name, 'job']])
    await expectSound(bench)
  },
}))

export const unreadMessageCases: readonly ContractCase[] = [
  ...givenUpAtEveryEnd,
  {
    name: 'the messages of a run that no worker began in time are settled with its end',
    async run(bench) {
      const { id } = await bench.start({ expiresInMs: 1_000 })
      const letter = bench.message(id, { policy: dead })
      await bench.deliver(letter)
      await bench.clock.advance(1_000)
      await bench.rescue()
      assert.deepEqual(await deadIds(bench), [letter.id])
    },
  },
  {
    name: 'what the last transition of a run takes is not left over, whether or not it knows its mailbox to be empty',
    async run(bench) {
      for (const emptyAt of [undefined, 2]) {
        const held = await bench.hold()
        const letters = [bench.message(held.runId, { policy: dead }), job(bench, held.runId)]
        await bench.store.deliver(letters)
        const takes = letters.map(({ id }) => id)
        await bench.commit(held, { ...over, takes, ...(emptyAt === undefined ? {} : { emptyAt }) })
        assert.deepEqual(await deadIds(bench), [])
        assert.deepEqual(await subscribed(bench, jobs), [])
      }
    },
  },
  {
    name: 'a message that comes between the last look of a holder and the end of its run is not lost',
    async run(bench) {
      const held = await bench.hold()
      const seen = bench.message(held.runId, { policy: dead })
      await bench.deliver(seen)
      const late = bench.message(held.runId, { policy: dead })
      const end = bench.transition(held, { ...over, takes: [seen.id], emptyAt: 1 })
      await bench.deliver(late)
      assert.equal(succeeded(await bench.send(end)).inbox, 2)
      assert.deepEqual(await deadIds(bench), [late.id])
    },
  },
  {
    name: 'what a run has not read is given up however much it is, but for what its last transition takes',
    async run(bench) {
      const held = await bench.hold()
      const plain = Array.from({ length: 120 }, () => bench.message(held.runId))
      const letters = Array.from({ length: 60 }, () => bench.message(held.runId, { policy: dead }))
      const passedOn = [1, 2].map((n) => job(bench, held.runId, { data: String(n) }))
      const [taken] = letters
      await bench.store.deliver([...plain.slice(0, 60), ...letters, ...passedOn, ...plain.slice(60)])
      await bench.commit(held, { ...over, takes: taken === undefined ? [] : [taken.id] })
      await bench.chores()
      assert.deepEqual(await bench.mailbox(held.runId), [])
      const expected = letters.slice(1).map(({ id }) => id)
      assert.deepEqual(new Set(await deadIds(bench)), new Set(expected))
      assert.deepEqual((await subscribed(bench, jobs)).length, 1)
      assert.deepEqual((await subscribed(bench, jobs)).length, 1)
      assert.deepEqual(await subscribed(bench, jobs), [])
      await expectSound(bench)
    },
  },
  {
    name: 'an end that is sent again gives nothing up twice',
    async run(bench) {
      const held = await bench.hold()
      await bench.store.deliver([bench.message(held.runId, { policy: dead }), job(bench, held.runId)])
      const end = bench.transition(held, over)
      const first = succeeded(await bench.send(end))
      assert.equal((await subscribed(bench, jobs)).length, 1)
      assert.deepEqual(await bench.send(end), first)
      assert.equal((await deadIds(bench)).length, 1)
      assert.deepEqual(await subscribed(bench, jobs), [])
    },
  },
  {
    name: 'WC-W1 what comes after the end says so to its sender, takes the way of its policy, and moves nothing',
    async run(bench) {
      const id = await failedRun(bench)
      const before = await bench.run(id)
      const waiter = await parkWatching(bench, [on(jobs)])
      await bench.clock.advance(5)
      const letter = bench.message(id, { policy: dead })
      const answer = { outcome: 'target-terminated', status: 'failed' }
      const plain = bench.message(id)
      assert.deepEqual(await bench.store.deliver([plain, letter, job(bench, id)]), [answer, answer, answer])
      assert.deepEqual(await bench.run(id), { ...before, inbox: 2 }, 'what is discarded is not kept at all')
      assert.deepEqual(await bench.mailbox(id), [])
      const { endedAt } = before
      const expected = { ...letter, position: 1, at: bench.clock.now(), status: 'failed', endedAt }
      assert.deepEqual(await bench.store.deadLetters({}, { limit: 10 }), [expected])
      await expectWoken(bench, waiter.runId, 1)
      await expectSound(bench)
    },
  },
  {
    name: 'what came after the end and is sent again is known, and given up once',
    async run(bench) {
      const id = await failedRun(bench)
      const letters = [bench.message(id, { policy: dead }), job(bench, id)]
      await bench.store.deliver(letters)
      const again = { outcome: 'target-terminated', status: 'failed', repeated: true }
      assert.deepEqual(await bench.store.deliver(letters), [again, again])
      assert.equal((await deadIds(bench)).length, 1)
      assert.equal((await subscribed(bench, jobs)).length, 1)
      assert.deepEqual(await subscribed(bench, jobs), [])
      assert.equal((await bench.run(id)).inbox, 2)
    },
  },
  {
    name: 'what was accepted before the end and is sent again after it is answered as the first time',
    async run(bench) {
      const held = await bench.hold()
      const letters = [bench.message(held.runId, { policy: dead }), bench.message(held.runId)]
      await bench.store.deliver(letters)
      await bench.commit(held, over)
      const again = { outcome: 'queued', repeated: true }
      assert.deepEqual(await bench.store.deliver(letters), [again, again])
      assert.equal((await deadIds(bench)).length, 1)
      assert.equal((await bench.run(held.runId)).inbox, 2)
    },
  },
  {
    name: 'a message that is passed on while no run waits is kept for the next one that does',
    async run(bench) {
      const held = await bench.hold()
      await bench.store.deliver([job(bench, held.runId, { data: '"a"' }), job(bench, held.runId, { data: '"b"' })])
      await bench.commit(held, over)
      for (const data of ['a', 'b']) {
        const next = await bench.hold()
        await bench.commit(next, { outbound: outbound({ watches: [on(jobs)] }) })
        assert.deepEqual(await messages(bench, next.runId), [['broadcast', jobs.name, data]])
      }
    },
  },
  {
    name: 'what was sent to two runs under one id, and read by neither, is passed on by both',
    async run(bench) {
      for (let index = 0; index < 2; index += 1) {
        const held = await bench.hold()
        await bench.deliver(job(bench, held.runId, { id: 'same' }))
        await bench.commit(held, over)
      }
      for (const count of [1, 1, 0]) assert.equal((await subscribed(bench, jobs)).length, count)
    },
  },
  {
    name: 'what is passed on to a topic goes to all who wait on it, and to those who come while it is retained',
    async run(bench) {
      const held = await bench.hold()
      const waiters = [await parkWatching(bench, [on(news)]), await parkWatching(bench, [on(news)])]
      const letter = bench.message(held.runId, { kind: 'topic-signal', name: news.name, policy: toTopic })
      await bench.deliver(letter)
      await bench.commit(held, over)
      for (const { runId } of waiters) await expectWoken(bench, runId, 1)
      assert.equal((await subscribed(bench, news)).length, 1)
      await bench.clock.advance(news.retainMs)
      assert.deepEqual(await subscribed(bench, news), [])
    },
  },
  {
    name: 'what a queue gave to a run that ends without reading it goes to another, again and again',
    async run(bench) {
      await bench.deliver(bench.broadcast({ topic: jobs, policy: toQueue, data: '"work"' }))
      for (let round = 0; round < 4; round += 1) {
        const held = await bench.hold()
        await bench.commit(held, { outbound: outbound({ watches: [on(jobs)] }) })
        assert.deepEqual(await messages(bench, held.runId), [['broadcast', jobs.name, 'work']])
        await bench.commit(held, over)
      }
      const last = await bench.hold()
      await bench.commit(last, { append: [waiting()], outbound: outbound({ watches: [on(jobs)] }) })
      const [message] = await bench.mailbox(last.runId)
      await bench.commit(last, { ...over, takes: [message?.id ?? ''] })
      assert.deepEqual(await subscribed(bench, jobs), [], 'it was read')
    },
  },
  {
    name: 'what a topic gave to a run that ends without reading it may be kept as a dead letter',
    async run(bench) {
      const held = await bench.hold()
      await bench.commit(held, { outbound: outbound({ watches: [on(news)] }) })
      await bench.deliver(bench.broadcast({ topic: news, policy: dead }))
      await bench.commit(held, over)
      const [letter] = await bench.store.deadLetters({}, { limit: 5 })
      assert.deepEqual([letter?.kind, letter?.name, letter?.runId], ['broadcast', news.name, held.runId])
    },
  },
  {
    name: 'unread ends and refusals are dropped with their run',
    async run(bench) {
      await bench.start({ key: 'taken' })
      const held = await bench.hold()
      const starts = [bench.child(held.runId, { key: 'taken' })]
      await bench.commit(held, { outbound: outbound({ starts, watches: [endOf(bench.newRun().id)] }) })
      assert.equal((await bench.mailbox(held.runId)).length, 2)
      await bench.commit(held, over)
      assert.deepEqual(await bench.mailbox(held.runId), [])
      assert.deepEqual(await deadIds(bench), [])
    },
  },
  {
    name: 'a run that is retried does not find what was given up when it failed, and gets what comes now',
    async run(bench) {
      const held = await bench.hold()
      await bench.deliver(bench.message(held.runId, { policy: dead }))
      await bench.commit(held, { append: [ending('failed')], status: 'failed' })
      controlled(await bench.control(held.runId, ask.retry), 'done')
      assert.deepEqual(await bench.mailbox(held.runId), [])
      assert.equal((await deadIds(bench)).length, 1)
      assert.deepEqual(await bench.deliver(bench.message(held.runId, { policy: dead })), { outcome: 'queued' })
      assert.equal((await bench.mailbox(held.runId)).length, 1)
    },
  },
  {
    name: 'a message with a policy to a removed run finds no run',
    async run(bench) {
      const id = await failedRun(bench)
      controlled(await bench.control(id, ask.remove), 'done')
      const answer = await bench.deliver(bench.message(id, { policy: dead }))
      assert.deepEqual(answer, { outcome: 'target-not-found' })
      assert.deepEqual(await deadIds(bench), [])
    },
  },
  {
    name: 'WC-C1 a message that races with the end of its run is given up once, never lost and never left behind',
    async run(bench) {
      for (let round = 0; round < 20; round += 1) {
        const held = await bench.hold()
        const letter = bench.message(held.runId, { policy: dead })
        const end = bench.transition(held, { ...over, emptyAt: 0 })
        const acts = [(): Promise<unknown> => bench.send(end), (): Promise<unknown> => bench.deliver(letter)]
        await Promise.all((round % 2 === 0 ? acts : acts.toReversed()).map((act) => act()))
        assert.deepEqual(await bench.mailbox(held.runId), [])
        const letters = await bench.store.deadLetters({ runId: held.runId }, { limit: 5 })
        assert.deepEqual(
          letters.map(({ id }) => id),
          [letter.id],
        )
      }
    },
  },
]
