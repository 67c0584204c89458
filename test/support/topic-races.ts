// Races with the end of a topic that nobody uses. A run that begins to wait on it, and a sender, come before its end or after
// it: the run gets what is sent from there on, once, and at a position that no topic has given before. What is sent to a queue
// goes to one run, whichever row of the queue the runs have locked.

import assert from 'node:assert/strict'
import { sentId } from '../../src/core/model/message.ts'
import type { TopicRules } from '../../src/core/model/topic.ts'
import type { Held } from '../../src/testing/contract/bench.ts'
import type { Committed } from '../../src/store.ts'
import type { Race, RaceWorld } from './race-world.ts'

const dayMs = 24 * 60 * 60 * 1_000
const topic: TopicRules = { name: 'topic', delivery: 'all', retainMs: 60_000 }
const watched = { kind: 'topic', ...topic } as const

function subscribe({ commit }: RaceWorld, held: Held): Promise<Committed> {
  return commit(held, { outbound: { starts: [], watches: [watched], unwatches: [] } })
}

/** A run that has a broadcast of a topic of which nothing but its row is left, and which is looked at next. */
async function arrange(world: RaceWorld): Promise<Held> {
  const { hold, commit, deliver, broadcast, clock, store } = world
  const held = await hold()
  await subscribe(world, held)
  await deliver(broadcast({ id: 'a', topic }))
  await commit(held, { outbound: { starts: [], watches: [], unwatches: [watched] } })
  await clock.advance(dayMs + 1)
  // What was sent is forgotten.
  await store.doChores()
  return held
}

async function assertBothThere({ mailbox }: RaceWorld, { runId }: Held): Promise<void> {
  const messages = await mailbox(runId)
  assert.deepEqual(messages.map(sentId), ['a', 'a'], 'the second is another than the first')
  assert.equal(new Set(messages.map(({ id }) => id)).size, 2)
}

const waitAgainstEnd: Race = async (world) => {
  const { deliver, broadcast, store } = world
  const held = await arrange(world)
  await world.atOnce<unknown[]>(
    () => store.doChores(),
    () => subscribe(world, held),
  )
  assert.equal((await deliver(broadcast({ id: 'a', topic }))).outcome, 'delivered', 'it waits, whichever came first')
  await assertBothThere(world, held)
}

const sendAgainstEnd: Race = async (world) => {
  const { deliver, broadcast, store } = world
  const held = await arrange(world)
  await world.atOnce<unknown[]>(
    () => store.doChores(),
    () => deliver(broadcast({ id: 'a', topic })),
    () => store.doChores(),
  )
  await subscribe(world, held)
  await assertBothThere(world, held)
}

/** A run comes to a queue that goes; when it has made sure that the queue is there, another one and a sender begin it anew. */
const takersAgainstEnd: Race = async (world) => {
  const { commit, deliver, broadcast, clock, executed, hold, mailbox, run, store } = world
  const queue: TopicRules = { name: 'queue', delivery: 'one', retainMs: 0 }
  const one = { kind: 'topic', ...queue } as const
  const come = (held: Held): Promise<Committed> =>
    commit(held, { outbound: { starts: [], watches: [one], unwatches: [] } })
  const [first, second] = [await hold(), await hold()]
  await come(first)
  await commit(first, { outbound: { starts: [], watches: [], unwatches: [one] } })
  await clock.advance(dayMs + 1)
  const before = executed.length
  const begun = async (): Promise<void> => {
    while (!executed.includes('commit.lock-topics', before)) await run(first.runId)
  }
  await world.atOnce<unknown[]>(
    () => store.doChores(),
    () => come(first),
    () => begun().then(() => deliver(broadcast({ id: 'a', topic: queue }))),
    () => begun().then(() => come(second)),
  )
  const messages = [...(await mailbox(first.runId)), ...(await mailbox(second.runId))]
  assert.deepEqual(messages.map(sentId), ['a'], 'one of them takes it')
}

export const topicRaces: Readonly<Record<string, Race>> = {
  'a run that begins to wait against the end of its topic': waitAgainstEnd,
  'a broadcast against the end of its topic': sendAgainstEnd,
  'runs that come to a queue against its end': takersAgainstEnd,
}
