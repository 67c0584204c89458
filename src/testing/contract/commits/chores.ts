// One end or one broadcast writes a bounded amount. The rest is left as chores, which any worker continues, in pages; reads,
// subscriptions and retries in between see the states that `core/model/chore.ts` describes.

import assert from 'node:assert/strict'
import { defaultPageLimits } from '../../../core/model/chore.ts'
import type { Run } from '../../../core/model/run.ts'
import type { TopicRules } from '../../../core/model/topic.ts'
import type { NewMessage } from '../../../store.ts'
import { atOnce, prices, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { endPaths } from '../end-paths.ts'
import { expectSound, jobs, news, on, outbound, sentIds, subscribed, publish } from '../exchanges.ts'
import { dead } from '../messages/unread-messages.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

const over = { append: [ending('succeeded')], status: 'succeeded' } as const
const failed = { append: [ending('failed')], status: 'failed' } as const

/** More than an end settles in its commit, and more than one page after that. */
const many = defaultPageLimits.withEnd + defaultPageLimits.messages + 50

/** Messages that are unread when their run ends. */
async function leave(
  bench: ContractBench,
  { runId }: Held,
  count: number,
  changes: (index: number) => Partial<NewMessage>,
): Promise<readonly NewMessage[]> {
  const messages = Array.from({ length: count }, (_, index) => bench.message(runId, changes(index)))
  for (let from = 0; from < count; from += 250) await bench.store.deliver(messages.slice(from, from + 250))
  return messages
}

/** Every dead letter, read in pages of any size. */
async function deadIds({ store }: ContractBench): Promise<readonly string[]> {
  return (await store.deadLetters({}, { limit: 10_000 })).map(({ id }) => id)
}

/** Runs that wait on a topic, one more than a broadcast reaches in its commit; in the order in which they subscribed. */
async function subscribers(bench: ContractBench, topic: TopicRules): Promise<readonly Held[]> {
  const lease = { session: 'subscriber', token: 1 }
  const held: Held[] = []
  for (let from = 0; from <= defaultPageLimits.subscribers; from += 250) {
    const count = Math.min(250, defaultPageLimits.subscribers + 1 - from)
    const started = await bench.store.start(Array.from({ length: count }, () => bench.newRun({ lease })))
    const some = started.map(({ run }) => ({ runId: run?.id ?? '', lease, seq: run?.seq ?? 0 }))
    await bench.store.commit(
      some.map((one) =>
        bench.transition(one, {
          append: [waiting()],
          status: 'waiting',
          parkIf: { inbox: 0 },
          outbound: outbound({ watches: [on(topic)] }),
        }),
      ),
    )
    held.push(...some)
    await bench.clock.advance(1)
  }
  return held
}

async function inboxes({ store }: ContractBench, held: readonly Held[]): Promise<readonly number[]> {
  return (await store.get(held.map(({ runId }) => runId))).map((run) => (run as Run).inbox)
}

const last = (held: readonly Held[]): Held => held.at(-1) as Held

const leftByEveryEnd = endPaths.map((way): ContractCase => ({
  name: `what a run has not read when it ${way.name} is settled however much it is`,
  async run(bench) {
    const held = await bench.hold(way.changes)
    await leave(bench, held, defaultPageLimits.withEnd + 5, () => ({ policy: dead }))
    await way.end(bench, held)
    assert.equal((await bench.run(held.runId)).status, way.status)
    assert.equal((await bench.mailbox(held.runId)).length, 5)
    await expectSound(bench)
    await bench.chores()
    assert.deepEqual(await bench.mailbox(held.runId), [])
    assert.equal((await deadIds(bench)).length, defaultPageLimits.withEnd + 5)
    await expectSound(bench)
  },
}))

export const choreCases: readonly ContractCase[] = [
  ...leftByEveryEnd,
  {
    name: 'a run with more unread messages than one commit may settle has ended at once, and they are settled in pages',
    async run(bench) {
      const held = await bench.hold()
      const messages = await leave(bench, held, many, (index) => (index % 2 === 0 ? { policy: dead } : {}))
      await bench.commit(held, over)
      assert.equal((await bench.run(held.runId)).status, 'succeeded')
      const meant = messages.filter(({ policy }) => policy !== null).map(({ id }) => id)
      let settled = (await deadIds(bench)).length
      assert.ok(settled > 0 && settled < meant.length, 'the commit settles some')
      await expectSound(bench)
      const pages: number[] = []
      while ((await bench.store.doChores()).worked) {
        const now = (await deadIds(bench)).length
        pages.push(now - settled)
        settled = now
        await expectSound(bench)
      }
      assert.ok(Math.max(...pages) <= defaultPageLimits.messages, 'a page is bounded')
      assert.deepEqual(await bench.mailbox(held.runId), [])
      assert.deepEqual(new Set(await deadIds(bench)), new Set(meant))
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
    },
  },
  {
    name: 'what the last transition of a run takes is not given up, also if that is all that its commit would settle',
    async run(bench) {
      const held = await bench.hold()
      const messages = await leave(bench, held, defaultPageLimits.withEnd + 20, () => ({ policy: dead }))
      const takes = messages.slice(0, defaultPageLimits.withEnd + 10).map(({ id }) => id)
      await bench.commit(held, { ...over, takes })
      await bench.chores()
      const left = messages.slice(defaultPageLimits.withEnd + 10).map(({ id }) => id)
      assert.deepEqual(new Set(await deadIds(bench)), new Set(left))
      await expectSound(bench)
    },
  },
  {
    name: 'what goes on to a topic goes there once and in its order, however many do the chores at once',
    async run(bench) {
      const held = await bench.hold()
      const policy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const
      const count = defaultPageLimits.withEnd + 40
      await leave(bench, held, count, (index) => {
        return { kind: 'topic-signal', name: jobs.name, policy, data: String(index) }
      })
      await bench.commit(held, over)
      await atOnce(4, () => bench.chores())
      await bench.chores()
      const reader = await bench.hold()
      const seen: number[] = []
      for (let index = 0; index < count; index += 1) {
        await bench.commit(reader, { append: [waiting()], outbound: outbound({ watches: [on(jobs)] }) })
        const [message] = await bench.mailbox(reader.runId)
        assert.ok(message)
        seen.push(Number(message.data))
        await bench.commit(reader, { takes: [message.id] })
      }
      assert.deepEqual(
        seen,
        Array.from({ length: count }, (_, index) => index),
      )
      assert.deepEqual(await subscribed(bench, jobs), [])
      await expectSound(bench)
    },
  },
  {
    name: 'a run that is retried before all its messages were settled may still read the rest',
    async run(bench) {
      const held = await bench.hold()
      const messages = await leave(bench, held, defaultPageLimits.withEnd + 30, () => ({ policy: dead }))
      await bench.commit(held, failed)
      controlled(await bench.control(held.runId, ask.retry), 'done')
      await bench.chores()
      const rest = messages.slice(defaultPageLimits.withEnd).map(({ id }) => id)
      assert.deepEqual(
        (await bench.mailbox(held.runId)).map(({ id }) => id),
        rest,
      )
      assert.deepEqual(
        new Set(await deadIds(bench)),
        new Set(messages.slice(0, defaultPageLimits.withEnd).map(({ id }) => id)),
      )
      const again = await bench.take(held.runId)
      await bench.commit(again, { ...over, takes: rest.slice(0, 1) })
      await bench.chores()
      assert.equal((await deadIds(bench)).length, messages.length - 1)
      await expectSound(bench)
    },
  },
  {
    name: 'a message that comes while a chore settles those before it takes the way of its policy at once',
    async run(bench) {
      const held = await bench.hold()
      await leave(bench, held, defaultPageLimits.withEnd + 10, () => ({}))
      await bench.commit(held, over)
      const late = bench.message(held.runId, { policy: dead })
      assert.deepEqual(await bench.deliver(late), { outcome: 'target-terminated', status: 'succeeded' })
      assert.deepEqual(await deadIds(bench), [late.id])
      await bench.chores()
      assert.deepEqual(await deadIds(bench), [late.id])
      assert.deepEqual(await bench.mailbox(held.runId), [])
      await expectSound(bench)
    },
  },
  {
    name: 'a broadcast goes to a page of its subscribers with its commit, to the others by a chore, and to each once',
    slow: true,
    async run(bench) {
      const held = await subscribers(bench, prices)
      assert.deepEqual(await publish(bench, 'a', prices), { outcome: 'delivered', runs: defaultPageLimits.subscribers })
      const first = held.map((_, index) => (index < defaultPageLimits.subscribers ? 1 : 0))
      assert.deepEqual(await inboxes(bench, held), first, 'those who subscribed first')
      await atOnce(3, () => bench.chores())
      assert.deepEqual(
        await inboxes(bench, held),
        held.map(() => 1),
      )
      const known = { outcome: 'delivered', runs: held.length, repeated: true }
      assert.deepEqual(await publish(bench, 'a', prices), known, 'a repeated send says how far it has come')
      await bench.chores()
      assert.deepEqual((await inboxes(bench, held)).at(-1), 1)
      await expectSound(bench)
    },
  },
  {
    name: 'no broadcast overtakes another one that has not gone to all yet, at any subscriber',
    slow: true,
    async run(bench) {
      const held = await subscribers(bench, prices)
      await publish(bench, 'a', prices)
      assert.deepEqual(await publish(bench, 'b', prices), { outcome: 'queued', runs: 0 })
      const between = await bench.hold()
      await bench.commit(between, { append: [waiting()], outbound: outbound({ watches: [on(prices)] }) })
      assert.deepEqual(await publish(bench, 'c', prices), { outcome: 'queued', runs: 0 })
      await bench.chores()
      for (const { runId } of [held[0] as Held, held[500] as Held, last(held)]) {
        assert.deepEqual(await sentIds(bench, runId), ['a', 'b', 'c'])
      }
      assert.deepEqual(
        await inboxes(bench, held),
        held.map(() => 3),
      )
      assert.deepEqual(await sentIds(bench, between.runId), ['c'], 'who subscribes later gets what is sent later')
      await publish(bench, 'd', prices)
      await bench.chores()
      assert.deepEqual(await sentIds(bench, last(held).runId), ['a', 'b', 'c', 'd'])
      await expectSound(bench)
    },
  },
  {
    name: 'a run that has unsubscribed when its page comes gets nothing, and an expired broadcast reaches no run',
    slow: true,
    async run(bench) {
      const held = await subscribers(bench, prices)
      await publish(bench, 'a', prices)
      controlled(await bench.control(last(held).runId, ask.cancel), 'done')
      await bench.chores()
      assert.equal((await inboxes(bench, held)).at(-1), 0)
      const newcomer = await bench.hold()
      await bench.commit(newcomer, { append: [waiting()], outbound: outbound({ watches: [on(prices)] }) })
      await publish(bench, 'b', prices, { expiresInMs: 1_000 })
      await bench.clock.advance(1_000)
      await bench.chores()
      assert.deepEqual(await bench.mailbox(newcomer.runId), [])
      assert.equal((await inboxes(bench, held))[0], 2)
      await expectSound(bench)
    },
  },
  {
    name: 'what a topic retains goes once to a run that subscribes again before its page comes, and to one that comes later',
    slow: true,
    async run(bench) {
      const held = await subscribers(bench, news)
      const again = await bench.hold()
      const watches = outbound({ watches: [on(news)] })
      await bench.commit(again, { append: [waiting()], outbound: watches })
      await publish(bench, 'a', news)
      await publish(bench, 'b', news)
      assert.deepEqual(await bench.mailbox(again.runId), [], 'its page has not come')
      assert.deepEqual(await subscribed(bench, news), ['a', 'b'])
      await bench.commit(again, { append: [waiting('again')], outbound: watches })
      assert.deepEqual(await sentIds(bench, again.runId), ['a', 'b'])
      await bench.chores()
      assert.deepEqual(await sentIds(bench, again.runId), ['a', 'b'])
      assert.deepEqual(await sentIds(bench, last(held).runId), ['a', 'b'])
      assert.deepEqual(await sentIds(bench, (held[0] as Held).runId), ['a', 'b'])
      await expectSound(bench)
    },
  },
  {
    name: 'of two chores the one that has waited longer comes first, and both are done',
    near: true,
    async run(bench) {
      const ends = [await bench.hold(), await bench.hold()]
      for (const held of ends) {
        await leave(bench, held, defaultPageLimits.withEnd + defaultPageLimits.messages + 10, () => ({}))
        await bench.commit(held, over)
        await bench.clock.advance(1)
      }
      const left = async (): Promise<readonly boolean[]> =>
        Promise.all(ends.map(async ({ runId }) => (await bench.mailbox(runId)).length > 10))
      assert.deepEqual(await left(), [true, true])
      assert.equal((await bench.store.doChores()).worked, true)
      assert.deepEqual(await left(), [false, true])
      assert.equal((await bench.store.doChores()).worked, true)
      assert.deepEqual(await left(), [false, false], 'the first has had its turn')
      await bench.chores()
      for (const { runId } of ends) assert.deepEqual(await bench.mailbox(runId), [])
    },
  },
]
