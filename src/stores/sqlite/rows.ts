// Rows as SQLite gives them, and what they mean. This is the only place where the shape of a row is taken on trust.

import type { Chore } from '../../core/chore.ts'
import type { Entry } from '../../core/entry.ts'
import { entryOfRow } from '../../core/entry-row.ts'
import type { Run, Wish } from '../../core/run.ts'
import type { WaitRow } from '../../core/books.ts'
import type { Message, Reception } from '../../core/message.ts'
import type { MessagePolicy } from '../../core/topic.ts'
import type { Broadcast } from '../../core/topic.ts'
import { damageOf, policyIn, tagsIn, wishIn } from '../../core/run-row.ts'
import { wantsIn } from '../../core/wanted.ts'
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
  readonly wants: string | null
  readonly watched: number
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
  readonly feed: number
  readonly key_id: string | null
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
  const [tags, wish] = [tagsIn(row.tags), wishIn(row.wish)]
  return {
    id: row.id,
    shard: row.shard,
    type: row.type,
    version: row.version,
    key: row.key,
    keyScope: row.key_scope,
    idempotencyKey: row.idempotency_key,
    parentId: row.parent_id,
    tags: tags ?? [],
    metadata: row.metadata,
    feed: row.feed === 1,
    keyId: row.key_id,
    status: row.status,
    readiness: row.readiness,
    priority: row.priority,
    due: row.due,
    seq: row.seq,
    base: row.base,
    inbox: row.inbox,
    wants: wantsIn(row.wants, row.token),
    watched: row.watched === 1,
    wish: wish ?? null,
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
    ...damageOf(tags, wish),
  }
}

export function wishOf(text: string | null): Wish | null {
  return wishIn(text) ?? null
}

export function entryOf(given: Row): Entry {
  const { transition_id: transition, ...row } = given as unknown as EntryRow
  return entryOfRow({ ...row, transition })
}

interface MessageRow {
  readonly run_id: string
  readonly position: number
  readonly id: string
  readonly kind: Message['kind']
  readonly name: string
  readonly data: string
  readonly policy: string | null
  readonly at: number
  readonly outcome: Reception
}

export function messageOf(given: Row): Message {
  const { run_id: runId, position, id, kind, name, data, policy, at } = given as unknown as MessageRow
  return { id, runId, kind, name, data, policy: policyIn(policy), position, at }
}

interface BroadcastRow {
  readonly topic: string
  readonly position: number
  readonly id: string
  readonly delivery: Broadcast['delivery']
  readonly data: string
  readonly policy: string | null
  readonly at: number
  readonly expires_at: number | null
  readonly taken_by: string | null
  readonly told: number
}

export function broadcastOf(given: Row): Broadcast {
  const row = given as unknown as BroadcastRow
  const { topic, position, id, delivery, data, at, told } = row
  const policy = policyIn(row.policy)
  return { topic, position, id, delivery, data, policy, at, expiresAt: row.expires_at, takenBy: row.taken_by, told }
}

interface WaitTableRow {
  readonly kind: WaitRow['kind']
  readonly target: string
  readonly run_id: string
  readonly effect: WaitRow['effect']
  readonly delivery: WaitRow['delivery']
  readonly opened_at: number
  readonly since: number
  readonly missed: number | null
}

export function waitOf(given: Row): WaitRow {
  const {
    kind,
    target,
    run_id: runId,
    effect,
    delivery,
    opened_at: openedAt,
    since,
    missed,
  } = given as unknown as WaitTableRow
  return { kind, target, runId, effect, delivery, openedAt, since, missed }
}

interface ChoreTableRow {
  readonly kind: Chore['kind']
  readonly target: string
  readonly position: number
  readonly after_opened_at: number | null
  readonly after_run: string | null
}

export function choreOf(given: Row): Chore {
  const { kind, target, position, after_opened_at: openedAt, after_run: runId } = given as unknown as ChoreTableRow
  return { kind, target, position, after: openedAt === null || runId === null ? null : { openedAt, runId } }
}

export function policyText(policy: MessagePolicy | null): string | null {
  return policy === null ? null : JSON.stringify(policy)
}
