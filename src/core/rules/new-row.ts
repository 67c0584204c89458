// The row of a new run, as every store that keeps rows inserts it.

import type { Run } from '../model/run.ts'
import { dueAt } from '../model/due.ts'
import type { RunStart } from './run-start.ts'

/** The row of a new run, leased to the session that asked for that if it lives. */
export function newRow(given: RunStart, now: number, leased: boolean): Run {
  const due = dueAt(given.due, now) ?? now
  // Its first input is decided: what follows leads it from here to where it waits.
  const isDecided = (given.decided ?? null) !== null
  const isWoken = isDecided && (given.messages?.length ?? 0) > 0
  const lease = leased ? given.lease : null
  // Field by field: every start makes one, and a spread of the lease would make two more objects.
  return {
    id: given.id,
    shard: given.shard,
    type: given.type,
    version: given.version,
    key: given.key,
    keyScope: given.keyScope,
    idempotencyKey: given.idempotencyKey,
    parentId: given.parentId,
    tags: [...given.tags],
    metadata: given.metadata,
    feed: given.feed,
    keyId: given.keyId ?? null,
    priority: given.priority,
    status: isDecided ? 'waiting' : leased ? 'running' : 'pending',
    readiness: isDecided ? (isWoken ? 'ready' : 'idle') : leased ? 'leased' : due > now ? 'timed' : 'ready',
    due: isDecided ? (isWoken ? now : null) : leased ? null : due,
    token: lease?.token ?? 0,
    session: leased ? (lease?.session ?? '') : null,
    seq: 1,
    base: 1,
    inbox: 0,
    wakeNames: null,
    watched: false,
    controlRequest: null,
    undo: 'none',
    crashes: 0,
    deadline: leased && given.leaseMs !== null ? now + given.leaseMs : null,
    timeoutAt: given.timeoutMs === null ? null : now + given.timeoutMs,
    expiresAt: isDecided || leased || given.expiresInMs === null ? null : now + given.expiresInMs,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
    deletedAt: null,
    deleteReason: null,
  }
}
