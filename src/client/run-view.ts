// A run and its journal as the user sees them: times are dates, payloads are decoded.

import type { Entry, EntryKind } from '../core/entry.ts'
import { messageOf } from '../core/error.ts'
import type { KeyScope } from '../core/key.ts'
import { readMetadata } from '../core/labels.ts'
import type { Payloads } from '../core/payload.ts'
import { isTerminal, type Run, type RunStatus, type Wish } from '../core/run.ts'

export interface RunView {
  readonly id: string
  readonly type: string
  readonly version: number
  readonly status: RunStatus
  readonly key: string | null
  readonly keyScope: KeyScope
  readonly idempotencyKey: string | null
  /** The run that asked for this one. */
  readonly parentId: string | null
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, unknown>>
  readonly priority: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly endedAt: Date | null
  /** When it will go on by itself. */
  readonly dueAt: Date | null
  /** Claims since a holder last committed anything. */
  readonly crashes: number
  /** What its holder is asked to do. */
  readonly wish: WishView | null
  readonly deletedAt: Date | null
  readonly deleteReason: string | null
  /** Why it gave up, on one line. */
  readonly lastError: string | null
  /** What it returned, once it has succeeded. */
  readonly output?: unknown
  /** Why it gave up, once it has failed. */
  readonly error?: unknown
}

export interface WishView {
  readonly kind: Wish['kind']
  readonly reason: string | null
  readonly at: Date
}

/** An entry as the user reads it: its `kind` tells what `name` and `meta` are. */
export type JournalEntry = {
  [Kind in EntryKind]: {
    readonly seq: number
    readonly at: Date
    readonly kind: Kind
    readonly name: Extract<Entry, { kind: Kind }>['name']
    readonly meta: Extract<Entry, { kind: Kind }>['meta']
    readonly data: unknown
  }
}[EntryKind]

/** The run, with what its last entry says of its end. */
export async function viewOf(run: Run, last: Entry | undefined, payloads: Payloads): Promise<RunView> {
  if (last?.kind === 'succeeded') return { ...rowView(run), output: await readData(run.id, last, payloads) }
  if (last?.kind !== 'failed') return rowView(run)
  const error = await readData(run.id, last, payloads)
  return { ...rowView(run), lastError: oneLine(error), error }
}

/** The run as it stands in a list: without its output. An error that cannot be read must not spoil the list. */
export async function listedView(run: Run, last: Entry | undefined, payloads: Payloads): Promise<RunView> {
  if (last?.kind !== 'failed') return rowView(run)
  const error = await readData(run.id, last, payloads).catch((cause: unknown) => cause)
  return { ...rowView(run), lastError: oneLine(error) }
}

function rowView(run: Run): RunView {
  const { id, type, version, status, key, keyScope, idempotencyKey, parentId, tags, priority, crashes, wish } = run
  return {
    id,
    type,
    version,
    status,
    key,
    keyScope,
    idempotencyKey,
    parentId,
    tags,
    metadata: readMetadata(run.metadata) ?? {},
    priority,
    createdAt: new Date(run.createdAt),
    updatedAt: new Date(run.updatedAt),
    endedAt: dateOf(run.endedAt),
    dueAt: isTerminal(status) ? null : dateOf(run.due),
    crashes,
    wish: wish === null ? null : { kind: wish.kind, reason: wish.reason, at: new Date(wish.at) },
    deletedAt: dateOf(run.deletedAt),
    deleteReason: run.deleteReason,
    lastError: null,
  }
}

const longestSummary = 200

/** An error in so many words. */
function oneLine(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${messageOf(error)}` : messageOf(error)
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > longestSummary ? `${line.slice(0, longestSummary - 1)}…` : line
}

function dateOf(time: number | null): Date | null {
  return time === null ? null : new Date(time)
}

export async function entryView(runId: string, entry: Entry, payloads: Payloads): Promise<JournalEntry> {
  const { seq, at, kind, name, meta } = entry
  // Whoever may read a journal need not be able to complete its waits.
  const data = kind === 'issued' ? undefined : await readData(runId, entry, payloads)
  return { seq, at: new Date(at), kind, name, meta, data } as JournalEntry
}

export async function readData(runId: string, entry: Entry, payloads: Payloads): Promise<unknown> {
  const { seq, name, data } = entry
  if (data === null) return undefined
  // What a wait got stands in the journal as it was left in the mailbox, written for the place that it came from.
  const by = entry.kind === 'woken' ? entry.meta.by : undefined
  return payloads.decode(await payloads.fetch(data), by?.place ?? { runId, seq, name })
}
