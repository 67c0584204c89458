// What runs may do to one another, and what may be sent to them and to topics, drawn at random from a few names: so few
// that they meet.

import { waitTargetOf } from '../../src/core/model/wait-condition.ts'
import type { WaitTarget } from '../../src/core/model/wait-target.ts'
import type { MessagePolicy } from '../../src/core/model/topic.ts'
import type { Lease, Run } from '../../src/core/model/run.ts'
import type { TopicRules } from '../../src/core/model/topic.ts'
import type { ChildStart, Outbound } from '../../src/core/model/transition.ts'
import type { DeadLetterFilter, LoadRequest, NewBroadcast, NewMessage, NewRun, Page } from '../../src/store.ts'
import type { Chances } from './chances.ts'

const topics: readonly TopicRules[] = [
  { name: 'news', delivery: 'all', retainMs: 200 },
  { name: 'prices', delivery: 'all', retainMs: 0 },
  { name: 'jobs', delivery: 'one', retainMs: 0 },
  { name: 'jobs', delivery: 'one', retainMs: 0 },
]

const dead: MessagePolicy = { onUnread: 'dead-letter' }

/** A message. One that goes on to a topic reaches other runs: only where that may happen. */
export function messageTo(chances: Chances, runId: string, mayReachOthers: boolean): NewMessage {
  const id = chances.unique('m')
  const data = `${chances.below(100)}`
  if (!mayReachOthers || chances.oneIn(2)) {
    return { id, runId, kind: 'signal', name: 'go', data, policy: chances.maybe(3, [dead]) }
  }
  const topic = chances.pick(topics)
  return { id, runId, kind: 'topic-signal', name: topic.name, data, policy: policyOf(chances, topic) }
}

export function broadcastOf(chances: Chances): NewBroadcast {
  const topic = chances.pick(topics)
  return {
    id: chances.unique('b'),
    topic,
    data: `${chances.below(100)}`,
    policy: policyOf(chances, topic),
    expiresInMs: chances.maybe(4, [20, 150]),
  }
}

function policyOf(chances: Chances, { delivery, retainMs }: TopicRules): MessagePolicy | null {
  return chances.pick([null, dead, { onUnread: 'broadcast', delivery, retainMs }])
}

/** What a transition of that run does to others. */
export function outboundOf(
  chances: Chances,
  run: Pick<Run, 'id'>,
  rows: readonly Run[],
  newRun: () => NewRun,
  lease: () => Lease | null,
): Outbound {
  const child = (): ChildStart => ({
    run: { ...newRun(), parentId: run.id, lease: lease(), leaseMs: null, timeoutMs: null, expiresInMs: null },
    awaited: !chances.oneIn(3),
    onParentEnd: chances.oneIn(3) ? 'abandon' : 'cancel',
  })
  const some = (most: number): WaitTarget[] =>
    Array.from({ length: chances.below(most + 1) }, () => watchedOf(chances, rows, newRun))
  const children = Array.from({ length: chances.oneIn(2) ? 0 : chances.below(3) }, child)
  return {
    // Nobody starts itself.
    starts: children.filter((one) => one.run.id !== run.id),
    watches: some(2),
    unwatches: chances.oneIn(3) ? some(2) : [],
  }
}

function watchedOf(chances: Chances, rows: readonly Run[], newRun: () => NewRun): WaitTarget {
  if (chances.oneIn(2)) return { kind: 'topic', ...chances.pick(topics) }
  const live = rows.filter(({ endedAt }) => endedAt === null)
  const among = live.length > 0 && !chances.oneIn(4) ? live : rows
  const runId = chances.oneIn(20) ? newRun().id : chances.pick(among).id
  return waitTargetOf({ tag: 'it', kind: 'run', runId }) ?? { kind: 'run', runId }
}

export function loadRequest(chances: Chances, runId: string, rows: readonly Run[]): LoadRequest {
  const latest = { kind: chances.pick(['logged', 'step-succeeded'] as const), name: chances.pick(['line', 'pay']) }
  return {
    runId,
    after: chances.pick([0, 0, 1, 3, 100]),
    limit: chances.pick([0, 1, 2, 1_000]),
    ...messagesRequest(chances, rows),
    ...(chances.oneIn(3) ? { latest } : {}),
  }
}

/** What of a mailbox is asked for: a page of all, or messages by name, for which no page counts. */
function messagesRequest(chances: Chances, rows: readonly Run[]): Pick<LoadRequest, 'messages' | 'messagesAfter'> {
  const page = chances.oneIn(3) ? { messagesAfter: chances.pick([0, 1, 2, 5, 100]) } : {}
  if (chances.oneIn(2)) return page
  const names = chances.some(['go', 'news', 'jobs', 'nothing', ...rows.map(({ id }) => id)], 2)
  return { ...page, messages: { names, limit: chances.pick([0, 1, 2, 100]) } }
}

export function deadLetterQuery(
  chances: Chances,
  rows: readonly Run[],
  sent: readonly NewMessage[],
): { readonly filter: DeadLetterFilter; readonly page: Page } {
  const named = chances.oneIn(3) ? { name: chances.pick(['go', 'news', 'jobs', 'nothing']) } : {}
  const of = rows.length > 0 && chances.oneIn(4) ? { runId: chances.pick(rows).id } : {}
  const letter = sent.length > 0 && chances.oneIn(4) ? chances.pick(sent) : null
  const after = letter === null ? {} : { after: `${letter.runId} ${letter.id}` }
  return { filter: { ...named, ...of }, page: { limit: chances.pick([0, 1, 3, 1_000]), ...after } }
}
