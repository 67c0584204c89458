// Helpers for the cases of the contract that let runs watch and start others, and read the results.

import assert from 'node:assert/strict'
import type { WaitTarget } from '../../core/model/wait-target.ts'
import { sentId, type Ended, type Message, type Refused } from '../../core/model/message.ts'
import type { TopicRules } from '../../core/model/topic.ts'
import type { Outbound } from '../../core/model/transition.ts'
import type { Delivered, NewBroadcast } from '../../store.ts'
import type { ContractBench, Held } from './bench.ts'
import { waiting } from './drafts.ts'

/** The outbound effects of a transition: only the named ones. */
export function outbound(changes: Partial<Outbound>): Outbound {
  return { starts: [], watches: [], unwatches: [], ...changes }
}

export function endOf(runId: string): WaitTarget {
  return { kind: 'run', runId }
}

export function on(topic: TopicRules): WaitTarget {
  return { kind: 'topic', ...topic }
}

/** Parks a run, a new one unless the case has one, that watches this from here on. It has read all messages so far. */
export async function parkWatching(bench: ContractBench, watches: readonly WaitTarget[], given?: Held): Promise<Held> {
  const held = given ?? (await bench.hold())
  const { inbox } = await bench.run(held.runId)
  const changes = { append: [waiting()], parkIf: { inbox }, outbound: outbound({ watches }) }
  assert.equal((await bench.park(held, changes)).released, true, 'there is nothing to look at yet')
  return held
}

/** The names and payloads of the messages in a mailbox. */
export async function messages({ mailbox }: ContractBench, runId: string): Promise<readonly (readonly unknown[])[]> {
  return (await mailbox(runId)).map(({ kind, name, data }) => [kind, name, JSON.parse(data) as unknown])
}

/** The ids with which the messages in a mailbox were sent: of a broadcast, its id in the topic. */
export async function sentIds({ mailbox }: ContractBench, runId: string): Promise<readonly string[]> {
  return (await mailbox(runId)).map(sentId)
}

/** The content of a message about the end of a run, or about a child that could not be started. */
export function saidBy({ data }: Message): Ended | Refused {
  return JSON.parse(data) as Ended | Refused
}

/** Expects that a waiting run is ready to be claimed now. */
export async function expectWoken({ run, clock }: ContractBench, runId: string, inbox: number): Promise<void> {
  const row = await run(runId)
  const expected = ['waiting', 'ready', clock.now(), null, inbox]
  assert.deepEqual([row.status, row.readiness, row.due, row.session, row.inbox], expected)
}

/** Expects that a waiting run still waits, and has got no further message. */
export async function expectAsleep({ run }: ContractBench, runId: string, inbox = 0): Promise<void> {
  const row = await run(runId)
  assert.deepEqual([row.status, row.readiness, row.due, row.inbox], ['waiting', 'idle', null, inbox])
}

/** Runs that subscribe within a minute still get its broadcasts. */
export const news: TopicRules = { name: 'news', delivery: 'all', retainMs: 60_000 }

/** Each of its broadcasts goes to one run. */
export const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

/** Sends to a topic. */
export async function publish(
  { deliver, broadcast }: ContractBench,
  id: string,
  topic: TopicRules,
  more: Partial<NewBroadcast> = {},
): Promise<Delivered> {
  return deliver(broadcast({ id, topic, ...more }))
}

/** The messages that a run gets at once when it begins to watch this now. */
export async function subscribed(bench: ContractBench, topic: TopicRules): Promise<readonly string[]> {
  const held = await bench.hold()
  await bench.commit(held, { append: [waiting()], outbound: outbound({ watches: [on(topic)] }) })
  return sentIds(bench, held.runId)
}

/** Checks the invariants of every row, mailbox and feed that do not depend on the entries of a case. */
export async function expectSound({ store }: ContractBench): Promise<void> {
  const wrong = (await store.doctor()).filter(({ name, offenders }) => isAlwaysTrue.has(name) && offenders.length > 0)
  assert.deepEqual(wrong, [])
}

const isAlwaysTrue: ReadonlySet<string> = new Set([
  'history_gapless',
  'seq_counts_entries',
  'history_begins_with_start',
  'state_is_fold',
  'status_fields_match',
  'mailbox_dense',
  'signal_consumed_at_most_once',
  'end_notified',
  'queue_not_stuck',
  'late_catch_up',
  'leftovers_settled',
  'sent_delivered',
  'one_key_one_live_run',
  'feed_dense',
  'feed_complete',
  'nothing_without_run',
  'nothing_without_topic',
])
