// Runs to start, drawn at random from a few types, keys and tags: so few that they meet.

import type { NewRun } from '../../src/store.ts'
import type { Chances } from './chances.ts'
import { idempotencyKeys, tags } from './run-filter.ts'

export const payloadKeys: readonly string[] = ['old', 'new']

interface Given {
  readonly id: string
  readonly shard: number
  readonly kind: Pick<NewRun, 'type' | 'version'>
  readonly key: string | null
  readonly now: number
  /** Runs that may have asked for it. */
  readonly parents: readonly Pick<NewRun, 'id'>[]
  /** Its time may be bound. */
  readonly mayEnd: boolean
  readonly mayMissDeadline: boolean
  readonly session: () => string
}

export function drawnRun(chances: Chances, given: Given): NewRun {
  const { id, shard, kind, key, now, parents, mayEnd, mayMissDeadline, session } = given
  return {
    id,
    shard,
    ...kind,
    key,
    keyScope: chances.pick(['workflow', 'version', 'global', 'none']),
    idempotencyKey: chances.maybe(5, idempotencyKeys),
    parentId: parents.length === 0 || !chances.oneIn(4) ? null : chances.pick(parents).id,
    tags: chances.some(tags, 3),
    metadata: chances.maybe(4, ['{"a":1}', '{ "é" : "\\u0000" }']),
    feed: chances.oneIn(2),
    keyId: chances.maybe(4, payloadKeys),
    priority: chances.pick([0, 0, 0, 5, -1]),
    due: chances.maybe(4, [
      { at: null, afterMs: chances.below(300) },
      { at: now + chances.below(500) - 100, afterMs: null },
      { at: now + 200, afterMs: chances.below(400) },
      { at: null, afterMs: null },
    ]),
    timeoutMs: mayEnd ? chances.maybe(6, [50, 300, 900]) : null,
    expiresInMs: mayEnd ? chances.maybe(6, [30, 200, 700]) : null,
    lease: chances.oneIn(3) ? { session: session(), token: chances.oneIn(10) ? 7 : 1 } : null,
    leaseMs: mayMissDeadline ? chances.maybe(2, [50, 200, 800]) : null,
    transition: chances.unique('start'),
    first: { kind: 'started', name: null, meta: null, data: `{"n":${chances.below(1_000)}}` },
  }
}
