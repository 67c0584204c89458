// A run as the memory store keeps it: the row, its journal and its mailbox in one object.

import type { Entry } from '../../core/entry.ts'
import type { Readiness, Run, RunStatus } from '../../core/run.ts'
import type { Delivered, Message, NewRun } from '../../store.ts'

/** A message, and what its sender was told: it is told the same again if it repeats itself. */
export interface Kept {
  readonly message: Message
  readonly answer: Delivered
}

export class Row {
  readonly id: string
  readonly shard: number
  readonly type: string
  readonly version: number
  readonly priority: number
  readonly createdAt: number
  status: RunStatus = 'pending'
  readiness: Readiness = 'ready'
  due: number | null = null
  base = 1
  inbox = 0
  crashes = 0
  token = 0
  session: string | null = null
  deadline: number | null = null
  readonly timeoutAt: number | null
  expiresAt: number | null
  updatedAt: number
  endedAt: number | null = null
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

  /** The mailbox, copied. */
  messages(): Message[] {
    return this.mailbox === null ? [] : Array.from(this.mailbox.values(), ({ message }) => ({ ...message }))
  }

  /** The row as others may see it: later changes do not reach it. */
  view(): Run {
    return {
      id: this.id,
      shard: this.shard,
      type: this.type,
      version: this.version,
      status: this.status,
      readiness: this.readiness,
      priority: this.priority,
      due: this.due,
      seq: this.entries.length,
      base: this.base,
      inbox: this.inbox,
      crashes: this.crashes,
      token: this.token,
      session: this.session,
      deadline: this.deadline,
      timeoutAt: this.timeoutAt,
      expiresAt: this.expiresAt,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      endedAt: this.endedAt,
    }
  }
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
