// Meetings: calls that are made at once and must agree on what they did to each other, and what must be true of it, however
// their statements came.

import assert from 'node:assert/strict'
import { broadcastMessageId, passedOnId, sentMessageId } from '../../src/core/model/message.ts'
import type { MessagePolicy } from '../../src/core/model/topic.ts'
import type { TopicRules } from '../../src/core/model/topic.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Claimed, Committed, Delivered } from '../../src/store.ts'
import type { Held } from '../../src/testing/contract/bench.ts'
import { signalSent } from '../../src/testing/contract/drafts.ts'
import { outbound } from '../../src/testing/contract/exchanges.ts'
import {
  ends,
  isBefore,
  messageIds,
  onEnd,
  onTopic,
  parking,
  queue,
  signal,
  toAll,
  waitsFor,
  type Meeting,
  type Party,
} from './meeting-world.ts'

function released(answer: unknown): boolean {
  const committed = answer as Committed
  assert.equal(committed.outcome, 'committed')
  return committed.released
}

/** (a) A message is sent while its run is parked. */
export const sendAndPark: Meeting = async (world) => {
  const held = await world.hold()
  const park = parking(world, held, [signal])
  const message = world.message(held.runId)
  return {
    parties: [{ call: () => world.send(park) }, { call: () => world.deliver(message) }],
    judge([parked, sent], after) {
      assert.deepEqual(messageIds(after, held.runId), [message.id])
      const { outcome } = sent as Delivered
      assert.equal(outcome, released(parked) ? 'delivered' : 'queued', 'both know who came first')
    },
  }
}

/** (b) A run ends while another one begins to wait for that. `childFirst` turns the order of their locks around. */
export function endAndWatch(childFirst: boolean, how: 'commit' | 'cancel'): Meeting {
  return async (world) => {
    const [first, second] = [await world.hold(), await world.hold()]
    const [child, parent] = childFirst ? [first, second] : [second, first]
    const end = ends(world, child, { emptyAt: 0 })
    const watch = parking(world, parent, [onEnd(child.runId)])
    const cancelled = { kind: 'cancel', mode: 'now', reason: null } as const
    return {
      parties: [
        { call: () => (how === 'commit' ? world.send(end) : world.control(child.runId, cancelled, 'cancel')) },
        { call: () => world.send(watch) },
      ],
      judge([, watched], after) {
        const messages = after.messages.filter(({ runId }) => runId === parent.runId)
        assert.deepEqual(
          messages.map(({ kind, name }) => [kind, name]),
          [['ended', child.runId]],
          'it is notified once',
        )
        const row = after.runs.find(({ id }) => id === parent.runId)
        assert.equal(row?.session === null, released(watched))
        assert.deepEqual(after.waits, [])
      },
    }
  }
}

/** (c) Something is sent to a topic while a run subscribes. */
export function broadcastAndSubscribe(topic: TopicRules): Meeting {
  return async (world) => {
    const held = await world.hold()
    const subscribe = parking(world, held, [onTopic(topic)])
    const sent = world.broadcast({ topic, id: 'b' })
    return {
      parties: [{ call: () => world.deliver(sent) }, { call: () => world.send(subscribe) }],
      judge([answer], after, executed) {
        const got = messageIds(after, held.runId).length
        const { runs } = answer as { readonly runs?: number }
        if (topic !== toAll) assert.equal(got, 1, 'it came before or after, and is there')
        else assert.equal(got, runs, 'who was not there does not get it')
        if (isBefore(executed, 1, 0)) assert.equal(got, 1, 'who subscribed before gets it')
        if (topic === toAll && isBefore(executed, 0, 1)) assert.equal(got, 0)
        assert.equal(after.waits.length, topic === queue ? 0 : 1)
      },
    }
  }
}

/** (d) Something is sent to a topic while a run that was woken by something else unsubscribes. */
export function broadcastAndUnsubscribe(topic: TopicRules): Meeting {
  return async (world) => {
    const held = await world.hold()
    await world.send(parking(world, held, [signal, onTopic(topic)]))
    await world.deliver(world.message(held.runId, { id: 'm' }))
    const again = await world.take(held.runId)
    const at = world.clock.now()
    const leave = world.transition(again, {
      append: [{ kind: 'woken', name: 'w', meta: { winner: 'signal', trueAt: at, seenAt: at }, data: '1' }],
      takes: ['m'],
      outbound: outbound({ unwatches: [{ kind: 'topic', ...topic }] }),
    })
    const sent = world.broadcast({ topic, id: 'b' })
    return {
      parties: [{ call: () => world.deliver(sent) }, { call: () => world.send(leave) }],
      judge([answer, left], after, executed) {
        const got = messageIds(after, held.runId).slice(1)
        const { runs } = answer as { readonly runs?: number }
        const sent = after.broadcasts.map(broadcastMessageId)
        assert.deepEqual(got, runs === 1 ? sent : [], 'the run that the answer names is the run that got it')
        if (isBefore(executed, 0, 1)) assert.equal(got.length, 1)
        if (isBefore(executed, 1, 0)) assert.equal(got.length, 0, 'who has left gets nothing')
        assert.equal((left as Committed).outcome, 'committed')
        assert.deepEqual(after.waits, [])
      },
    }
  }
}

/** (e) Something is sent to a queue while two runs come for it. */
export const queueAndTwo: Meeting = async (world) => {
  const [one, other] = [await world.hold(), await world.hold()]
  const parks = [one, other].map((held) => parking(world, held, [onTopic(queue)]))
  const sent = world.broadcast({ topic: queue, id: 'b' })
  return {
    parties: [
      { call: () => world.deliver(sent) },
      { call: () => world.send(parks[0] as Transition) },
      { call: () => world.send(parks[1] as Transition) },
    ],
    judge(_, after) {
      const got = [one, other].map(({ runId }) => messageIds(after, runId).length)
      assert.deepEqual([Math.min(...got), Math.max(...got)], [0, 1], 'one of them gets it')
      const left = got[0] === 1 ? other : one
      assert.deepEqual(
        after.waits.map(({ runId }) => runId),
        [left.runId],
        'and the other one still waits',
      )
    },
  }
}

const policies = {
  discard: null,
  'dead-letter': { onUnread: 'dead-letter' },
  broadcast: { onUnread: 'broadcast', delivery: 'all', retainMs: 0 },
} as const satisfies Record<string, MessagePolicy | null>

/** (f) A run ends with a message that it has not read, while it is sent another one. */
export function endAndSend(name: keyof typeof policies): Meeting {
  return async (world) => {
    const held = await world.hold()
    const reader = await world.hold()
    await world.send(parking(world, reader, [onTopic(toAll)]))
    const policy = policies[name]
    const kind = name === 'broadcast' ? 'topic-signal' : 'signal'
    const message = (id: string) => world.message(held.runId, { id, kind, name: toAll.name, policy })
    await world.deliver(message('first'))
    const second = message('second')
    const end = ends(world, held)
    return {
      parties: [{ call: () => world.send(end) }, { call: () => world.deliver(second) }],
      judge([, answer], after) {
        const mine = after.messages.filter(({ runId }) => runId === held.runId)
        const fate = { discard: 'discarded', 'dead-letter': 'dead', broadcast: 'broadcast' }[name]
        const { outcome } = answer as Delivered
        const isKept = outcome === 'queued' || name !== 'discard'
        assert.deepEqual(
          mine.map(({ id, fate: given }) => [id, given]),
          isKept
            ? [
                ['first', fate],
                ['second', fate],
              ]
            : [['first', fate]],
          'what was not read has the fate that it was given',
        )
        const passedOn = mine.map(passedOnId)
        const sent = after.broadcasts.toSorted((a, b) => a.position - b.position)
        assert.deepEqual(
          sent.map(({ id }) => id),
          name === 'broadcast' ? passedOn : [],
          'in the order in which it came',
        )
        assert.deepEqual(messageIds(after, reader.runId), sent.map(broadcastMessageId))
      },
    }
  }
}

/** (g) Two are sent to a topic that one run is subscribed to, or subscribes to meanwhile. */
export function twoBroadcasts(topic: TopicRules, subscribesMeanwhile: boolean): Meeting {
  return async (world) => {
    const held = await world.hold()
    const park = parking(world, held, [onTopic(topic)])
    if (!subscribesMeanwhile) await world.send(park)
    const sent = ['x', 'y'].map((id) => world.broadcast({ topic, id }))
    const parties: Party[] = sent.map((one) => ({ call: () => world.deliver(one) }))
    if (subscribesMeanwhile) parties.push({ call: () => world.send(park) })
    return {
      parties,
      judge(_, after) {
        const inOrder = after.broadcasts.toSorted((a, b) => a.position - b.position).map(broadcastMessageId)
        assert.equal(inOrder.length, 2)
        const expected = topic === queue ? inOrder.slice(0, 1) : inOrder
        assert.deepEqual(messageIds(after, held.runId), expected, 'each once, and in the order of the topic')
      },
    }
  }
}

/** (h) A run ends, and with it its child, while that ends by itself. */
export function parentAndChild(awaited: boolean): Meeting {
  return async (world) => {
    const parent = await world.hold()
    const child = world.child(parent.runId, {}, { awaited, onParentEnd: 'cancel' })
    await world.commit(parent, { append: [waitsFor(onEnd(child.run.id))], outbound: outbound({ starts: [child] }) })
    const held = await world.take(child.run.id)
    const [parentEnds, childEnds] = [ends(world, parent), ends(world, held)]
    return {
      parties: [{ call: () => world.send(parentEnds) }, { call: () => world.send(childEnds) }],
      judge([ended, own], after) {
        assert.equal((ended as Committed).outcome, 'committed')
        const row = after.runs.find(({ id }) => id === child.run.id)
        const won = (own as Committed).outcome === 'committed'
        assert.equal(row?.status, won ? 'succeeded' : 'cancelling', 'it ended before, or is asked to stop')
        if (!won) assert.equal(row?.controlRequest?.kind, 'cancel')
        assert.deepEqual(
          after.waits.filter(({ effect }) => effect === 'cancel'),
          [],
          'nobody is to be cancelled any more',
        )
      },
    }
  }
}

/** (i) A message is sent while one holder parks the run and another one claims. */
export const sendParkAndClaim: Meeting = async (world) => {
  const held = await world.hold()
  const park = parking(world, held, [signal])
  const message = world.message(held.runId)
  return {
    parties: [
      { call: () => world.send(park) },
      { call: () => world.deliver(message) },
      { call: () => world.claim({ session: 'next' }), isUnrepeatable: true },
    ],
    judge([parked, , claimed], after) {
      assert.deepEqual(messageIds(after, held.runId), [message.id])
      const row = after.runs.find(({ id }) => id === held.runId)
      const { runs } = claimed as Claimed
      if (runs.length === 1) {
        assert.deepEqual(
          [row?.session, row?.status, runs[0]?.inbox],
          ['next', 'running', 1],
          'who claims it sees the message',
        )
      } else assert.equal(row?.readiness, released(parked) ? 'ready' : 'leased', 'a worker will see it')
    },
  }
}

/** (j) Something is sent to a queue while a run comes for it, and is cancelled. It must be there for the next one. */
export const queueAndCancel: Meeting = async (world) => {
  const held = await world.hold()
  const park = parking(world, held, [onTopic(queue)])
  const policy: MessagePolicy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 }
  const sent = world.broadcast({ topic: queue, id: 'b', policy })
  const now = { kind: 'cancel', mode: 'now', reason: null } as const
  return {
    parties: [
      { call: () => world.deliver(sent) },
      { call: () => world.send(park) },
      { call: () => world.control(held.runId, now, 'cancel') },
    ],
    judge(_, after) {
      assert.equal(after.runs[0]?.status, 'cancelled')
      const open = after.broadcasts.filter(({ takenBy }) => takenBy === null).map(({ id }) => id)
      const given = after.messages.filter(({ runId }) => runId === held.runId)
      assert.deepEqual(open, given.length === 0 ? ['b'] : given.map(passedOnId), 'it is there once')
    },
  }
}

/** (k) Two runs start children that have the same two keys, in opposite order: one of them must let go and begin again. */
export const sameKeys: Meeting = async (world) => {
  const parents = [await world.hold(), await world.hold()]
  const transitions = parents.map((parent, index) => {
    const keys = index === 0 ? ['k', 'l'] : ['l', 'k']
    const starts = keys.map((key) => world.child(parent.runId, { key }))
    const append = [waitsFor(...starts.map(({ run }) => onEnd(run.id)))]
    return world.transition(parent, { append, outbound: outbound({ starts }) })
  })
  return {
    parties: transitions.map((one) => ({ call: () => world.send(one) })),
    judge(_, after) {
      const children = after.runs.filter(({ parentId }) => parentId !== null)
      assert.deepEqual(children.map(({ key }) => key ?? '').toSorted(), ['k', 'l'], 'each key has one child')
      const refused = after.messages.filter(({ kind }) => kind === 'refused')
      assert.equal(refused.length, 2, 'the parent that got no child is notified')
      for (const { data } of refused) {
        const { by } = JSON.parse(data) as { readonly by: string }
        assert.ok(children.some(({ id }) => id === by))
      }
      assert.equal(after.waits.length, 4)
    },
  }
}

/** Two runs that wait for each other's end are ended at once: each would have to be notified by the other. */
export const endBoth: Meeting = async (world) => {
  const pair = [await world.hold(), await world.hold()] as const
  const [one, other] = pair
  await world.send(parking(world, one, [onEnd(other.runId)]))
  await world.send(parking(world, other, [onEnd(one.runId)]))
  const now = { kind: 'cancel', mode: 'now', reason: null } as const
  return {
    parties: pair.map(({ runId }) => ({ call: () => world.control(runId, now, `cancel ${runId}`) })),
    judge(_, after) {
      const ends = after.messages.map(({ kind, runId, fate }) => [kind, runId, fate])
      assert.equal(ends.length, 1, 'the first to end notifies the other one, which ends without having read it')
      assert.equal(ends[0]?.[2], 'discarded')
      assert.deepEqual(after.waits, [])
    },
  }
}

/** (l) A run sends a signal to one that is being parked for it. */
export const runSendsAndPark: Meeting = async (world) => {
  const [first, second] = [await world.hold(), await world.hold()]
  const park = parking(world, second, [signal])
  const sending = world.transition(first, { append: [signalSent(second.runId)] })
  return {
    parties: [{ call: () => world.send(park) }, { call: () => world.send(sending) }],
    judge(_, after) {
      assert.deepEqual(messageIds(after, second.runId), [sentMessageId(first.runId, 2)])
    },
  }
}

/** (l) A run sends to one that ends: the message is read by nobody, and its policy decides. */
export const runSendsAndEnd: Meeting = async (world) => {
  const [first, second] = [await world.hold(), await world.hold()]
  const end = ends(world, second)
  const policy = { onUnread: 'dead-letter' } as const
  const sending = world.transition(first, { append: [signalSent(second.runId, '"x"', { policy })] })
  return {
    parties: [{ call: () => world.send(end) }, { call: () => world.send(sending) }],
    judge(_, after) {
      const mine = after.messages.filter(({ runId }) => runId === second.runId)
      assert.deepEqual(
        mine.map(({ id, fate }) => [id, fate]),
        [[sentMessageId(first.runId, 2), 'dead']],
      )
    },
  }
}

/** (l) Two runs send to each other while both are parked. */
export const bothSend: Meeting = async (world) => {
  const [first, second] = [await world.hold(), await world.hold()]
  const parkedSending = (held: Held, other: Held): Transition => {
    const park = parking(world, held, [signal])
    return { ...park, append: [signalSent(other.runId), ...park.append] }
  }
  const transitions = [parkedSending(first, second), parkedSending(second, first)]
  return {
    parties: transitions.map((one) => ({ call: () => world.send(one) })),
    judge(_, after) {
      assert.deepEqual(messageIds(after, first.runId), [sentMessageId(second.runId, 2)])
      assert.deepEqual(messageIds(after, second.runId), [sentMessageId(first.runId, 2)])
    },
  }
}
