// A run as the memory store keeps it: the row, its journal and its mailbox in one object.

import type { Entry } from '../../../core/model/entry.ts'
import type { KeyScope } from '../../../core/model/key.ts'
import type { TakenMessage } from '../../../core/invariants/invariant.ts'
import type { Fate, DeliveryOutcome } from '../../../core/model/message.ts'
import type { Readiness, Run, RunStatus, UndoState, ControlRequest } from '../../../core/model/run.ts'
import type { AdvanceColumns, LeaveColumns } from '../../../core/rules/advance.ts'
import type { ClaimColumns } from '../../../core/rules/claims/claim.ts'
import { loadPage, type Loaded, type LoadRequest } from '../../../core/rules/claims/load.ts'
import type { LoadBudgets } from '../../../core/rules/claims/load-budget.ts'
import type { DeadLetter, Message, PayloadRewrite } from '../../../store.ts'

/** A message, and the answer to its sender: a repeated message gets the same answer. */
export interface Kept {
  readonly message: Message
  readonly outcome: DeliveryOutcome
  /** The entry with which the run took it; it stays known, so that delivering it again changes nothing. */
  takenBy: number | null
  /** Its fate, if its run left it unread. */
  fate: Fate | null
}

export class Row {
  readonly id: string
  readonly shard: number
  type: string
  version: number
  /** The type as which it was started: its idempotency key belongs to that. */
  readonly startedAs: string
  readonly key: string | null
  readonly keyScope: KeyScope
  readonly idempotencyKey: string | null
  readonly parentId: string | null
  readonly tags: readonly string[]
  readonly metadata: string | null
  feed: boolean
  keyId: string | null
  readonly priority: number
  readonly createdAt: number
  status: RunStatus
  readiness: Readiness
  due: number | null
  base = 1
  inbox = 0
  wakeNames: readonly string[] | null = null
  watched = false
  controlRequest: ControlRequest | null = null
  undo: UndoState = 'none'
  crashes = 0
  token: number
  session: string | null
  deadline: number | null
  timeoutAt: number | null
  expiresAt: number | null
  updatedAt: number
  endedAt: number | null = null
  deletedAt: number | null = null
  deleteReason: string | null = null
  /** Where it stands in the queue that it waits in. */
  place = -1
  readonly entries: Entry[] = []
  /** By id, first in first out. Created by the first message: most runs never get one. */
  mailbox: Map<string, Kept> | null = null

  /** The row of a new run: its journal has no entry yet, and its mailbox no message. */
  constructor(run: Run) {
    this.id = run.id
    this.shard = run.shard
    this.type = run.type
    this.version = run.version
    this.startedAs = run.type
    this.key = run.key
    this.keyScope = run.keyScope
    this.idempotencyKey = run.idempotencyKey
    this.parentId = run.parentId
    this.tags = copiedTags(run.tags)
    this.metadata = run.metadata
    this.feed = run.feed
    this.keyId = run.keyId
    this.priority = run.priority
    this.createdAt = run.createdAt
    this.status = run.status
    this.readiness = run.readiness
    this.due = run.due
    this.token = run.token
    this.session = run.session
    this.deadline = run.deadline
    this.timeoutAt = run.timeoutAt
    this.expiresAt = run.expiresAt
    this.updatedAt = run.updatedAt
  }

  get seq(): number {
    return this.entries.length
  }

  /** Takes messages out of the mailbox, with this entry. */
  take(ids: readonly string[], seq: number): void {
    for (const id of ids) {
      const kept = this.mailbox?.get(id)
      if (kept !== undefined) kept.takenBy ??= seq
    }
  }

  /** The messages that no transition has taken out of the mailbox, copied. */
  messages(): Message[] {
    if (this.mailbox === null) return []
    return [...this.mailbox.values()].filter(({ takenBy }) => takenBy === null).map(({ message }) => ({ ...message }))
  }

  /** How many messages no transition has taken, counted up to that many. */
  unread(most: number): number {
    let count = 0
    for (const { takenBy } of this.mailbox?.values() ?? []) {
      if (takenBy === null) count += 1
      if (count >= most) break
    }
    return count
  }

  /** A message of one of these names, or of any, came after a position, and no transition has taken it. */
  hasMessageAfter(after: number, names: readonly string[] | null): boolean {
    for (const { message, takenBy } of this.mailbox?.values() ?? []) {
      if (takenBy === null && message.position > after && (names?.includes(message.name) ?? true)) return true
    }
    return false
  }

  /** Messages that were given up, and that are kept for people. */
  deadLetters(): DeadLetter[] {
    const { status, endedAt } = this
    return [...(this.mailbox?.values() ?? [])].flatMap(({ message, fate }) =>
      fate === 'dead' ? [{ ...message, status, endedAt }] : [],
    )
  }

  /** The messages that were taken out of it, and when. */
  taken(): TakenMessage[] {
    if (this.mailbox === null) return []
    return [...this.mailbox.values()].flatMap(({ message: { id, position }, takenBy }) =>
      takenBy === null ? [] : [{ id, position, takenBy }],
    )
  }

  /** The page that a holder asked for, copied. */
  load(request: LoadRequest, bounds: LoadBudgets): Loaded {
    const { entries, ...rest } = loadPage(this.entries, this.messages(), request, bounds)
    return { entries: entries.map(copied), ...rest }
  }

  /** The same payloads under another key. */
  rewritePayloads({ keyId, entries, messages }: PayloadRewrite): void {
    this.keyId = keyId
    for (const { seq, data } of entries) {
      const entry = this.entries[seq - 1]
      if (entry !== undefined && entry.data !== null) this.entries[seq - 1] = { ...entry, data } as Entry
    }
    for (const { id, data } of messages) {
      const kept = this.mailbox?.get(id)
      if (kept !== undefined) this.mailbox?.set(id, { ...kept, message: { ...kept.message, data } })
    }
  }

  /** Copies a decided row into this one. Its queue and its journal are not changed. */
  adopt(run: Run): void {
    this.status = run.status
    this.readiness = run.readiness
    this.due = run.due
    this.controlRequest = run.controlRequest === null ? null : { ...run.controlRequest }
    this.undo = run.undo
    this.wakeNames = run.wakeNames?.slice() ?? null
    this.crashes = run.crashes
    this.token = run.token
    this.session = run.session
    this.deadline = run.deadline
    this.timeoutAt = run.timeoutAt
    this.expiresAt = run.expiresAt
    this.updatedAt = run.updatedAt
    this.endedAt = run.endedAt
    this.deletedAt = run.deletedAt
    this.deleteReason = run.deleteReason
  }

  /** Copies what a claim writes into this row. */
  adoptClaim(columns: ClaimColumns): void {
    this.status = columns.status
    this.readiness = columns.readiness
    this.due = columns.due
    this.session = columns.session
    this.token = columns.token
    this.crashes = columns.crashes
    this.deadline = columns.deadline
    this.expiresAt = columns.expiresAt
    this.wakeNames = columns.wakeNames
  }

  /** Copies what a transition writes while the lease stays; `seq` is the length of the journal. */
  adoptAdvance(columns: AdvanceColumns): void {
    this.crashes = columns.crashes
    this.updatedAt = columns.updatedAt
    this.keyId = columns.keyId
    this.undo = columns.undo
    this.timeoutAt = columns.timeoutAt
    this.expiresAt = columns.expiresAt
    this.type = columns.type
    this.version = columns.version
    this.feed = columns.feed
    this.base = columns.base
  }

  /** Copies what a transition writes with which the lease ends. */
  adoptLeave(columns: LeaveColumns): void {
    this.status = columns.status
    this.readiness = columns.readiness
    this.due = columns.due
    this.session = columns.session
    this.deadline = columns.deadline
    this.wakeNames = columns.wakeNames?.slice() ?? null
    this.controlRequest = columns.controlRequest
    this.timeoutAt = columns.timeoutAt
    this.endedAt = columns.endedAt
  }

  /** The row as others may see it: later changes do not reach it. */
  view(): Run {
    return {
      id: this.id,
      shard: this.shard,
      type: this.type,
      version: this.version,
      key: this.key,
      keyScope: this.keyScope,
      idempotencyKey: this.idempotencyKey,
      parentId: this.parentId,
      tags: copiedTags(this.tags),
      metadata: this.metadata,
      feed: this.feed,
      keyId: this.keyId,
      status: this.status,
      readiness: this.readiness,
      priority: this.priority,
      due: this.due,
      seq: this.entries.length,
      base: this.base,
      inbox: this.inbox,
      wakeNames: this.wakeNames === null ? null : [...this.wakeNames],
      watched: this.watched,
      controlRequest: this.controlRequest === null ? null : { ...this.controlRequest },
      undo: this.undo,
      crashes: this.crashes,
      token: this.token,
      session: this.session,
      deadline: this.deadline,
      timeoutAt: this.timeoutAt,
      expiresAt: this.expiresAt,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      endedAt: this.endedAt,
      deletedAt: this.deletedAt,
      deleteReason: this.deleteReason,
    }
  }
}

/** Most runs have none, and there are many. */
const noTags: readonly string[] = Object.freeze([])

function copiedTags(tags: readonly string[]): readonly string[] {
  return tags.length === 0 ? noTags : [...tags]
}

/** An entry that is not the one that is kept. */
export function copied(entry: Entry): Entry {
  return entry.meta === null ? { ...entry } : ({ ...entry, meta: copiedJson(entry.meta) } as Entry)
}

function copiedJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copiedJson)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copiedJson(member)]))
}
