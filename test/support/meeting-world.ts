// Where calls meet: a world with a read-committed store, parties that carry their ids with them (so each call can be repeated),
// and short ways to let runs wait for messages, topics and ends.

import type { Draft } from '../../src/core/model/entry.ts'
import type { WaitTarget } from '../../src/core/model/wait-target.ts'
import type { TopicRules } from '../../src/core/model/topic.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import { waitTargetOf, type RecordedCondition } from '../../src/core/model/wait-condition.ts'
import { createReadCommittedStore, type ReadCommittedStore } from '../read-committed/store.ts'
import type { Held } from '../../src/testing/contract/bench.ts'
import { ending } from '../../src/testing/contract/drafts.ts'
import { outbound } from '../../src/testing/contract/exchanges.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { createContractBench, type ContractBench } from '../../src/testing/contract/index.ts'
import { Director, type Turn } from './every-order.ts'
import { assertNothingLost, type State } from './exchange-state.ts'

export interface MeetingWorld extends ContractBench {
  readonly store: ReadCommittedStore
}

export interface Party {
  readonly call: () => Promise<unknown>
  /** Calling again is another call, not the same once more. */
  readonly isUnrepeatable?: true
}

export interface Met {
  readonly parties: readonly Party[]
  readonly judge: (answers: readonly unknown[], after: State, executed: readonly Turn[]) => void
}

/** What the parties find, and what must come of it. */
export type Meeting = (world: MeetingWorld) => Promise<Met>

export function createMeetingWorld(
  schedule: (statement: string) => Promise<void>,
  mutations: readonly string[] = [],
): MeetingWorld {
  const clock = createVirtualClock()
  const store = createReadCommittedStore({ clock, schedule, mutations: new Set(mutations) })
  const bench = createContractBench({ store, clock })
  // The feed lists all of them: that is one statement more, and so these are all the orders that there are.
  const feed = true
  return {
    ...bench,
    store,
    newRun: (changes) => bench.newRun({ feed, ...changes }),
    start: (changes) => bench.start({ feed, ...changes }),
    hold: (changes) => bench.hold({ feed, ...changes }),
    child: (parentId, changes, bond) => bench.child(parentId, { feed, ...changes }, bond),
  }
}

/** A world in which the parties of a meeting wait for their turns. */
export async function arrange(meeting: Meeting, mutations: readonly string[] = []) {
  const director = new Director()
  const world = createMeetingWorld(director.schedule, mutations)
  world.store.insides.db.watch(director.witness)
  const { parties, judge } = await meeting(world)
  return {
    director,
    store: world.store,
    calls: parties.map(({ call }) => call),
    waits: () => world.store.waits(),
    async judge(answers: readonly unknown[], executed: readonly Turn[]): Promise<void> {
      judge(answers, await assertNothingLost(world.store, world.clock.now()), executed)
    },
  }
}

export const queue: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }
export const toAll: TopicRules = { name: 'news', delivery: 'all', retainMs: 0 }
export const kept: TopicRules = { name: 'news', delivery: 'all', retainMs: 60_000 }

export function waitsFor(...conditions: readonly RecordedCondition[]): Draft {
  return { kind: 'waiting', name: 'w', meta: { conditions }, data: null }
}

export const signal: RecordedCondition = { tag: 'signal', kind: 'signal', name: 'approved' }
export const onTopic = (topic: TopicRules): RecordedCondition => ({
  tag: 'topic',
  kind: 'signal',
  name: topic.name,
  topic,
})
export const onEnd = (runId: string): RecordedCondition => ({ tag: 'end', kind: 'run', runId })

/** Parks a run that waits for these, and has seen so much of its mailbox. */
export function parking(
  { transition }: ContractBench,
  held: Held,
  conditions: readonly RecordedCondition[],
): Transition {
  const watches = conditions.map(waitTargetOf).filter((one): one is WaitTarget => one !== null)
  const rest = watches.length === 0 ? {} : { outbound: outbound({ watches }) }
  return transition(held, { append: [waitsFor(...conditions)], status: 'waiting', parkIf: { inbox: 0 }, ...rest })
}

export function ends({ transition }: ContractBench, held: Held, changes: Partial<Transition> = {}): Transition {
  return transition(held, { append: [ending('succeeded')], status: 'succeeded', ...changes })
}

/** The ids of what lies in a mailbox or did, first in first out. */
export function messageIds({ messages }: State, runId: string): readonly string[] {
  const mine = messages.filter((one) => one.runId === runId)
  return mine.toSorted((a, b) => a.position - b.position).map(({ id }) => id)
}

/** Whether one call had its answer before the other began. */
export function isBefore(executed: readonly Turn[], first: number, second: number): boolean {
  const last = executed.findLastIndex(({ call }) => call === first)
  return last !== -1 && last < executed.findIndex(({ call }) => call === second)
}
