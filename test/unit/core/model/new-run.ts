// A row for tests of what becomes of rows: pending, ready, plain, but for the changes.

import type { EntryKind } from '../../../../src/core/model/entry.ts'
import { isTerminal, type Run } from '../../../../src/core/model/run.ts'

export const terminalKinds: ReadonlySet<EntryKind> = new Set<EntryKind>(['succeeded', 'failed', 'cancelled'])

export function newRun(changes: Partial<Run> = {}): Run {
  const { status = 'pending' } = changes
  const rests = status === 'paused' || status === 'waiting' || isTerminal(status)
  return {
    id: 'run',
    shard: 0,
    type: 'shop.checkout',
    version: 1,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    feed: false,
    keyId: null,
    status,
    readiness: rests ? 'idle' : 'ready',
    priority: 0,
    due: rests ? null : 1_000,
    seq: 3,
    base: 1,
    inbox: 0,
    wakeNames: null,
    watched: false,
    controlRequest: null,
    undo: 'none',
    crashes: 0,
    token: 7,
    session: null,
    deadline: null,
    timeoutAt: null,
    expiresAt: null,
    createdAt: 1_000,
    updatedAt: 2_000,
    endedAt: null,
    deletedAt: null,
    deleteReason: null,
    ...changes,
  }
}
