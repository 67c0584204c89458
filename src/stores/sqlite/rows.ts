// Rows as SQLite gives them, and what they mean. This is the only place where the shape of a row is taken on trust.

import type { Entry } from '../../core/entry.ts'
import type { Run, Wish } from '../../core/run.ts'
import type { Message } from '../../store.ts'
import type { Row } from './driver.ts'

interface RunRow {
  readonly shard: number
  readonly id: string
  readonly type: string
  readonly version: number
  readonly status: Run['status']
  readonly readiness: Run['readiness']
  readonly priority: number
  readonly due: number | null
  readonly seq: number
  readonly base: number
  readonly inbox: number
  readonly crashes: number
  readonly token: number
  readonly session: string | null
  readonly deadline: number | null
  readonly timeout_at: number | null
  readonly expires_at: number | null
  readonly created_at: number
  readonly updated_at: number
  readonly ended_at: number | null
  readonly wish: string | null
  readonly key: string | null
  readonly key_scope: Run['keyScope']
  readonly idempotency_key: string | null
  readonly parent_id: string | null
  readonly tags: string | null
  readonly metadata: string | null
  readonly undo: Run['undo']
  readonly deleted_at: number | null
  readonly delete_reason: string | null
}

interface EntryRow {
  readonly seq: number
  readonly kind: string
  readonly name: string | null
  readonly meta: string | null
  readonly data: string | null
  readonly at: number
  readonly transition_id: string | null
}

export function runOf(given: Row): Run {
  const row = given as unknown as RunRow
  return {
    id: row.id,
    shard: row.shard,
    type: row.type,
    version: row.version,
    key: row.key,
    keyScope: row.key_scope,
    idempotencyKey: row.idempotency_key,
    parentId: row.parent_id,
    tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
    metadata: row.metadata,
    status: row.status,
    readiness: row.readiness,
    priority: row.priority,
    due: row.due,
    seq: row.seq,
    base: row.base,
    inbox: row.inbox,
    wish: wishOf(row.wish),
    undo: row.undo,
    crashes: row.crashes,
    token: row.token,
    session: row.session,
    deadline: row.deadline,
    timeoutAt: row.timeout_at,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
    deletedAt: row.deleted_at,
    deleteReason: row.delete_reason,
  }
}

export function wishOf(text: string | null): Wish | null {
  return text === null ? null : (JSON.parse(text) as Wish)
}

export function entryOf(given: Row): Entry {
  const row = given as unknown as EntryRow
  return {
    kind: row.kind,
    name: row.name,
    meta: row.meta === null ? null : (JSON.parse(row.meta) as unknown),
    data: row.data,
    seq: row.seq,
    at: row.at,
    transition: row.transition_id,
  } as Entry
}

export function messageOf(row: Row, runId: string): Message {
  const { id, name, data, position, at } = row as unknown as Message
  return { id, runId, name, data, position, at }
}
