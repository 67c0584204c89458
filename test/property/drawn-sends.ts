// What runs send in the property tests of stores, some of it to receivers that take few. It is drawn from a stream of its own,
// so that the rest of a seed stays as it is.

import type { Draft } from '../../src/core/model/entry.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { MessagePolicy, TopicRules } from '../../src/core/model/topic.ts'
import type { Random } from '../../src/core/runtime/ports.ts'

export const topics: readonly TopicRules[] = [
  { name: 'news', delivery: 'all', retainMs: 0 },
  { name: 'rates', delivery: 'all', retainMs: 60 },
  { name: 'jobs', delivery: 'one', retainMs: 0 },
]
export const policies: readonly (MessagePolicy | null)[] = [
  null,
  { onUnread: 'dead-letter' },
  { onUnread: 'broadcast', delivery: 'one', retainMs: 0 },
]

export function drawnSend(random: Random, rows: readonly Run[]): Draft {
  const below = (limit: number): number => random.uint32() % limit
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
  const [data, policy] = [`"${below(100)}"`, pick(policies)]
  if (below(3) === 0) {
    const meta = { topic: pick(topics), policy, expiresInMs: below(3) === 0 ? below(80) : null }
    const bound = below(3) === 0 ? { mostKept: 1 + below(4) } : {}
    return { kind: 'broadcast-sent', name: 'b', meta: { ...meta, ...bound }, data }
  }
  const bound = below(3) === 0 ? { mostUnread: 1 + below(4) } : {}
  const signal = below(2) === 0 ? 'go' : pick(topics).name
  return { kind: 'signal-sent', name: 's', meta: { to: pick(rows).id, signal, kind: 'signal', policy, ...bound }, data }
}
