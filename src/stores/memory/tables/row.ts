// A run as the memory store keeps it: the row, its journal and its mailbox in one object.

import type { Entry } from '../../../core/model/entry.ts'
import type { KeyScope } from '../../../core/model/key.ts'
import type { TakenMessage } from '../../../core/invariants/invariant.ts'
import type { Fate, DeliveryOutcome } from '../../../core/model/message.ts'
import type { Readiness, Run, RunStatus, UndoState, ControlRequest } from '../../../core/model/run.ts'
import { bytesOf, cutBy, type LoadBudgets } from '../../load-budget.ts'
import {
  messagesAtOnce,
  type Loaded,
  type LoadRequest,
  type MailboxRequest,
  type Message,
  type NewRun,
  type PayloadRewrite,
} from '../../../store.ts'

/** A message, and what its sender was told: it is told the same again if it repeats itself. */
export interface Kept {
  readonly message: Message
  readonly outcome: DeliveryOutcome
  /** The entry with which the run took it; it stays known, so that delivering it again changes nothing. */
  takenBy: number | null
  /** What became of it, if nobody read it. */
  fate: Fate | null
}

export class Row {
  readonly id: string
  readonly shard: number
  type: string
  version: number
  /** What it was when it was started: its idempotency key belongs to that. */
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
  status: RunStatus = 'pending'
  readiness: Readiness = 'ready'
  due: number | null = null
  base = 1
  inbox = 0
  wakeNames: readonly string[] | null = null
  watched = false
  controlRequest: ControlRequest | null = null
  undo: UndoState = 'none'
  crashes = 0
  token = 0
  session: string | null = null
  deadline: number | null = null
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

  constructor(run: NewRun, now: number) {
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
    this.keyId = run.keyId ?? null
    this.priority = run.priority
    this.createdAt = now
    this.timeoutAt = run.timeoutMs === null ? null : now + run.timeoutMs
    this.expiresAt = run.expiresInMs === null ? null : now + run.expiresInMs
    this.updatedAt = now
  }

  get seq(): number {
    return this.entries.length
  }

  /** A page of the journal, copied: nobody who gets it can change what is kept. */
  page(after: number, limit: number): Entry[] {
    return this.entries.slice(after, after + limit).map(copied)
  }

  /** Takes messages out of the mailbox, with this entry. */
  take(ids: readonly string[], seq: number): void {
    for (const id of ids) {
      const kept = this.mailbox?.get(id)
      if (kept !== undefined) kept.takenBy ??= seq
    }
  }

  /** What nobody has taken out of the mailbox, copied. */
  messages(): Message[] {
    if (this.mailbox === null) return []
    return [...this.mailbox.values()].filter(({ takenBy }) => takenBy === null).map(({ message }) => ({ ...message }))
  }

  /** How many messages nobody has taken, counted up to that many. */
  unread(most: number): number {
    let count = 0
    for (const { takenBy } of this.mailbox?.values() ?? []) {
      if (takenBy === null) count += 1
      if (count >= most) break
    }
    return count
  }

  /** A message of one of these names came after a position, and nobody has taken it. */
  hasMail(after: number, names: readonly string[]): boolean {
    for (const { message, takenBy } of this.mailbox?.values() ?? []) {
      if (takenBy === null && message.position > after && names.includes(message.name)) return true
    }
    return false
  }

  /** What was taken out of it, and when. */
  taken(): TakenMessage[] {
    if (this.mailbox === null) return []
    return [...this.mailbox.values()].flatMap(({ message: { id, position }, takenBy }) =>
      takenBy === null ? [] : [{ id, position, takenBy }],
    )
  }

  load({ after, limit, latest, mail }: LoadRequest, bounds: LoadBudgets): Loaded {
    const entries =
      latest === undefined
        ? bounds.entries.take(this.page(after, limit), bytesOf)
        : this.latest(latest.kind, latest.name)
    const found = mail === undefined ? this.messages().slice(0, messagesAtOnce) : this.mail(mail)
    return { entries, messages: bounds.messages.take(found, bytesOf), ...cutBy(bounds) }
  }

  private latest(kind: Entry['kind'], name: string): Entry[] {
    const entry = this.entries.findLast((one) => one.kind === kind && one.name === name)
    return entry === undefined ? [] : [copied(entry)]
  }

  private mail({ names, limit }: MailboxRequest): Message[] {
    const left = new Map(names.map((name) => [name, limit]))
    return this.messages().filter(({ name }) => {
      const more = left.get(name) ?? 0
      left.set(name, more - 1)
      return more > 0
    })
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

  /** Makes the row what a decision says. Its queue is not told, nor is its journal. */
  adopt(run: Run): void {
    this.status = run.status
    this.readiness = run.readiness
    this.due = run.due
    this.controlRequest = run.controlRequest === null ? null : { ...run.controlRequest }
    this.undo = run.undo
    this.wakeNames = run.wakeNames
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
