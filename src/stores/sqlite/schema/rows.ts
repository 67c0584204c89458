// Rows as SQLite returns them, and their meaning. This is the only place where the shape of a row is taken on trust.

import type { Chore } from '../../../core/model/chore.ts'
import type { Entry } from '../../../core/model/entry.ts'
import { entryOfRow } from '../../../core/rows/entry-row.ts'
import type { Run, ControlRequest } from '../../../core/model/run.ts'
import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Message, DeliveryOutcome } from '../../../core/model/message.ts'
import type { MessagePolicy } from '../../../core/model/topic.ts'
import type { Broadcast } from '../../../core/model/topic.ts'
import {
  damageOf,
  numberIn,
  policyIn,
  policyOf,
  tagsIn,
  timeIn,
  controlRequestIn,
  type PolicyColumns,
} from '../../../core/rows/run-row.ts'
import { wakeNamesIn } from '../../../core/rows/wake-names.ts'
import type { Row } from '../driver/driver.ts'

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
  readonly wake_names: string | null
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
  readonly control_request: string | null
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
  const [tags, controlRequest] = [tagsIn(row.tags), controlRequestIn(row.control_request)]
  return {
    id: row.id,
    shard: row.shard,
    type: row.type,
    version: numberIn(row.version),
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
    priority: numberIn(row.priority),
    due: timeIn(row.due),
    seq: numberIn(row.seq),
    base: numberIn(row.base),
    inbox: numberIn(row.inbox),
    wakeNames: wakeNamesIn(row.wake_names, row.token),
    watched: row.watched === 1,
    controlRequest: controlRequest ?? null,
    undo: row.undo,
    crashes: numberIn(row.crashes),
    token: numberIn(row.token),
    session: row.session,
    deadline: timeIn(row.deadline),
    timeoutAt: timeIn(row.timeout_at),
    expiresAt: timeIn(row.expires_at),
    createdAt: numberIn(row.created_at),
    updatedAt: numberIn(row.updated_at),
    endedAt: timeIn(row.ended_at),
    deletedAt: timeIn(row.deleted_at),
    deleteReason: row.delete_reason,
    ...damageOf(tags, controlRequest),
  }
}

export function controlRequestOf(text: string | null): ControlRequest | null {
  return controlRequestIn(text) ?? null
}

export function entryOf(given: Row): Entry {
  const { seq, at, kind, name, meta, data, transition_id: transition } = given as unknown as EntryRow
  return entryOfRow({ seq, at, kind, name, meta, data, transition })
}

interface MessageRow extends PolicyColumns {
  readonly run_id: string
  readonly position: number
  readonly id: string
  readonly kind: Message['kind']
  readonly name: string
  readonly data: string
  readonly at: number
  readonly outcome: DeliveryOutcome
}

export function messageOf(given: Row): Message {
  const row = given as unknown as MessageRow
  const { run_id: runId, position, id, kind, name, data, at } = row
  return { id, runId, kind, name, data, policy: policyOf(row.on_unread, row.delivery, row.retain_ms), position, at }
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
  readonly delivered_to: number
}

export function broadcastOf(given: Row): Broadcast {
  const row = given as unknown as BroadcastRow
  const { topic, position, id, delivery, data, at, delivered_to } = row
  const policy = policyIn(row.policy)
  return {
    topic,
    position,
    id,
    delivery,
    data,
    policy,
    at,
    expiresAt: row.expires_at,
    takenBy: row.taken_by,
    deliveredTo: delivered_to,
  }
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

/** A member of the list that a row of the feed keeps: entries of one run, from the first to the last `seq`. */
export type FeedRange = readonly [runId: string, first: number, last: number]
