// What runs send with their transitions: delivered with the commit, once, in order. Nothing about a receiver fails the sender:
// a message that it does not take now waits in the journal of its sender, and so do the later ones to the same receiver.

import assert from 'node:assert/strict'
import { defaultPageLimits } from '../../../core/model/chore.ts'
import { sentMessageId } from '../../../core/model/message.ts'
import { prices, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { broadcastSent, signalSent, step, waiting } from '../drafts.ts'
import {
  expectAsleep,
  expectSound,
  expectWoken,
  jobs,
  news,
  on,
  outbound,
  parkWatching,
  sentIds,
  subscribed,
} from '../exchanges.ts'
import * as ask from '../requests.ts'
import { decidedRun, event, unheld, waitingRun } from '../unheld.ts'
import { over, sentTo, texts } from './held-back.ts'
import { dead } from './unread-messages.ts'

export const sendCases: readonly ContractCase[] = [
  {
    name: 'a signal that a run sends arrives with the commit that says so, and wakes the run that waits for it',
    async run(bench) {
      const [sender, target, other] = [await bench.hold(), await bench.hold(), await bench.hold()]
      const parked = { append: [waiting()], parkIf: { inbox: 0, wakeNames: ['approved'] } }
      for (const held of [target, other]) await bench.park(held, parked)
      await bench.commit(sender, {
        append: [step(), signalSent(target.runId, '"yes"'), signalSent(other.runId, '"no"', { signal: 'refused' })],
      })
      await expectWoken(bench, target.runId, 1)
      await expectAsleep(bench, other.runId, 1)
      const [message] = await bench.mailbox(target.runId)
      assert.deepEqual(message, {
        id: sentMessageId(sender.runId, 3),
        runId: target.runId,
        kind: 'signal',
        name: 'approved',
        data: '"yes"',
        policy: null,
        position: 1,
        at: bench.clock.now(),
      })
      await expectSound(bench)
    },
  },
  {
    name: 'what a run sends stands in its journal as it was sent',
    async run(bench) {
      const [sender, target] = [await bench.hold(), await bench.hold()]
      const append = [signalSent(target.runId, '"a"', { policy: dead, mostUnread: 7 }), broadcastSent(news, '"b"')]
      await bench.commit(sender, { append })
      const kept = (await bench.journal(sender.runId)).slice(1)
      assert.deepEqual(
        kept.map(({ kind, name, meta, data }) => ({ kind, name, meta, data })),
        append,
      )
    },
  },
  {
    name: 'several messages of one transition arrive in their order, behind those that came before',
    async run(bench) {
      const [sender, one, two] = [await bench.hold(), await bench.hold(), await bench.hold()]
      await bench.deliver(bench.message(one.runId, { data: '"0"' }))
      await bench.commit(sender, {
        append: [...sentTo(one, ['1', '2']), ...sentTo(two, ['a']), step(), ...sentTo(one, ['3'])],
      })
      await bench.commit(sender, { append: sentTo(one, ['4']) })
      assert.deepEqual(await texts(bench, one), ['0', '1', '2', '3', '4'])
      assert.deepEqual(await texts(bench, two), ['a'])
      await expectSound(bench)
    },
  },
  {
    name: 'a transition that is repeated after a lost answer sends nothing again',
    async run(bench) {
      const [sender, target, waiter] = [await bench.hold(), await bench.hold(), await bench.hold()]
      await parkWatching(bench, [on(jobs)], waiter)
      const append = [...sentTo(target, ['1', '2']), broadcastSent(jobs), broadcastSent(jobs)]
      const transition = bench.transition(sender, { append })
      const first = await bench.send(transition)
      const again = await bench.send(transition)
      assert.deepEqual([first.outcome, again.outcome], ['committed', 'committed'])
      assert.deepEqual(await texts(bench, target), ['1', '2'])
      assert.equal((await bench.run(target.runId)).inbox, 2)
      assert.equal((await bench.run(waiter.runId)).inbox, 1)
      assert.equal((await subscribed(bench, jobs)).length, 1, 'the queue keeps the second one, once')
      await expectSound(bench)
    },
  },
  {
    name: 'a transition that is refused sends nothing',
    async run(bench) {
      const [sender, target] = [await bench.hold(), await bench.hold()]
      const append = [...sentTo(target, ['never']), broadcastSent(news)]
      const lease = { ...sender.lease, token: sender.lease.token + 1 }
      const stale = { guard: { seq: sender.seq + 1, lease: sender.lease } }
      for (const changes of [{ guard: { seq: sender.seq, lease } }, stale]) {
        const { outcome } = await bench.send(bench.transition(sender, { append, ...changes }))
        assert.equal(outcome, 'refused')
      }
      assert.equal((await bench.run(target.runId)).inbox, 0)
      assert.deepEqual(await subscribed(bench, news), [])
    },
  },
  {
    name: 'a run that sends to itself while it parks looks again',
    async run(bench) {
      const held = await bench.hold()
      const parking = { status: 'waiting', parkIf: { inbox: 0, wakeNames: ['approved'] } } as const
      const { released, inbox } = await bench.commit(held, { append: [waiting(), ...sentTo(held, ['me'])], ...parking })
      assert.deepEqual([released, inbox], [false, 1])
      assert.deepEqual(await texts(bench, held), ['me'])
      const append = [waiting('second'), signalSent(held.runId, '"other"', { signal: 'other' })]
      const second = await bench.commit(held, {
        append,
        status: 'waiting',
        parkIf: { inbox: 1, wakeNames: ['approved'] },
      })
      assert.equal(second.released, true, 'it does not wait for that one')
      await expectSound(bench)
    },
  },
  {
    name: 'a message to a child that is started with the same transition arrives',
    async run(bench) {
      const held = await bench.hold()
      const start = bench.child(held.runId)
      await bench.commit(held, {
        append: [waiting(), signalSent(start.run.id)],
        outbound: outbound({ starts: [start] }),
      })
      assert.deepEqual(await texts(bench, { runId: start.run.id }), ['sent'])
      await expectSound(bench)
    },
  },
  {
    name: 'a receiver that does not exist, was removed or has ended does not fail the sender',
    async run(bench) {
      const [sender, removed, ended] = [await bench.hold(), await bench.start(), await bench.hold()]
      await bench.control(removed.id, ask.remove)
      await bench.commit(ended, over)
      await bench.commit(sender, {
        append: [
          signalSent(bench.newRun().id),
          signalSent(removed.id),
          ...sentTo(ended, ['dropped']),
          signalSent(ended.runId, '"kept"', { policy: dead }),
        ],
      })
      const letters = await bench.store.deadLetters({}, { limit: 10 })
      assert.deepEqual(
        letters.map(({ id, runId }) => [id, runId]),
        [[sentMessageId(sender.runId, 5), ended.runId]],
      )
      assert.deepEqual(await bench.mailbox(ended.runId), [])
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
      await expectSound(bench)
    },
  },
  {
    name: 'a message in the name of a topic to a run that has ended goes to the topic',
    async run(bench) {
      const [sender, ended, waiter] = [await bench.hold(), await bench.hold(), await bench.hold()]
      await bench.commit(ended, over)
      await parkWatching(bench, [on(jobs)], waiter)
      const policy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const
      await bench.commit(sender, {
        append: [signalSent(ended.runId, '"job"', { signal: 'jobs', kind: 'topic-signal', policy })],
      })
      assert.deepEqual(await texts(bench, waiter), ['job'])
      await expectSound(bench)
    },
  },
  {
    name: 'the transition with which a run ends sends, too',
    async run(bench) {
      const [sender, target] = [await bench.hold(), await bench.hold()]
      await bench.commit(sender, { append: [...sentTo(target, ['last']), ...over.append], status: 'succeeded' })
      assert.equal((await bench.run(sender.runId)).status, 'succeeded')
      assert.deepEqual(await texts(bench, target), ['last'])
      await expectSound(bench)
    },
  },
  {
    name: 'a run sends in one batch with the end of its receiver: the message arrives, or its policy decides',
    async run(bench) {
      const [sender, target] = [await bench.hold(), await bench.hold()]
      const sending = bench.transition(sender, { append: [signalSent(target.runId, '"x"', { policy: dead })] })
      const answers = await bench.store.commit([sending, bench.transition(target, over)])
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        ['committed', 'committed'],
      )
      assert.equal((await bench.store.deadLetters({}, { limit: 10 })).length, 1)
      await expectSound(bench)
    },
  },
  {
    name: 'a broadcast that a run sends goes to some subscribers with its commit, and to all others by a chore',
    async run(bench) {
      const sender = await bench.hold()
      const subscribers: Held[] = []
      for (let count = 0; count <= defaultPageLimits.passedOn; count += 1) {
        subscribers.push(await parkWatching(bench, [on(prices)]))
        await bench.clock.advance(1)
      }
      await bench.commit(sender, { append: [broadcastSent(prices, '"1"'), broadcastSent(prices, '"2"')] })
      const counts = async () => {
        const rows = await bench.store.get(subscribers.map(({ runId }) => runId))
        return rows.map((row) => row?.inbox)
      }
      assert.equal((await counts()).at(-1), 0, 'one commit reaches few')
      await expectSound(bench)
      await bench.chores()
      assert.deepEqual(
        await counts(),
        subscribers.map(() => 2),
      )
      for (const held of subscribers) assert.deepEqual(await texts(bench, held), ['1', '2'])
      assert.deepEqual(await sentIds(bench, subscribers[0]?.runId ?? ''), [
        sentMessageId(sender.runId, 2),
        sentMessageId(sender.runId, 3),
      ])
      await expectSound(bench)
    },
  },
  {
    name: 'a broadcast that a run sends is kept, taken and forgotten as one of a client is',
    async run(bench) {
      const sender = await bench.hold()
      await bench.commit(sender, {
        append: [
          broadcastSent(news, '"kept"'),
          broadcastSent(news, '"brief"', { expiresInMs: 10 }),
          broadcastSent(jobs),
        ],
      })
      assert.equal((await subscribed(bench, news)).length, 2)
      await bench.clock.advance(10)
      assert.deepEqual(await subscribed(bench, news), [sentMessageId(sender.runId, 2)])
      assert.deepEqual(await subscribed(bench, jobs), [sentMessageId(sender.runId, 4)])
      assert.deepEqual(await subscribed(bench, jobs), [])
      await expectSound(bench)
    },
  },
  {
    name: 'an input that is decided without a lease sends, once, also to its own instance',
    async run(bench) {
      const [sender, target] = [await waitingRun(bench), await bench.hold()]
      const append = [event(), ...sentTo(target, ['1']), signalSent(sender.id, '"me"')]
      const transition = unheld(bench, sender, { append })
      assert.equal((await bench.send(transition)).outcome, 'committed')
      assert.equal((await bench.send(transition)).outcome, 'committed')
      assert.deepEqual(await texts(bench, target), ['1'])
      assert.deepEqual(await texts(bench, { runId: sender.id }), ['me'])
      await expectWoken(bench, sender.id, 1)
      await expectSound(bench)
    },
  },
  {
    name: 'a run that is started with a decided input sends what follows from it, once',
    async run(bench) {
      const target = await bench.hold()
      const given = decidedRun(bench, { append: [event(), ...sentTo(target, ['1'])] })
      await bench.store.start([given])
      await bench.store.start([given])
      assert.deepEqual(await texts(bench, target), ['1'])
      assert.deepEqual(await sentIds(bench, target.runId), [sentMessageId(given.id, 3)])
      await expectSound(bench)
    },
  },
]
