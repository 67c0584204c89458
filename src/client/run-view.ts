// A run and its journal as the user sees them: times are dates, payloads are decoded.

import type { Place } from '../core/codec.ts'
import type { Entry, EntryKind, PausedMeta } from '../core/entry.ts'
import { showErrors } from '../core/error-data.ts'
import { isHoldfastError, messageOf } from '../core/error.ts'
import type { KeyScope } from '../core/key.ts'
import { readMetadata } from '../core/labels.ts'
import type { Payloads } from '../core/payload.ts'
import { holdsNote } from '../core/place.ts'
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
  /**
   * The payload that keeps this from being shown, or the run from going on: its output or error cannot be read here, or it is
   * paused because a worker could not read what it needs. Null if all is well.
   */
  readonly unreadable: UnreadableView | null
  /** What it returned, once it has succeeded. */
  readonly output?: unknown
  /** Why it gave up, once it has failed. `JSON.stringify` shows errors with name, message and cause. */
  readonly error?: unknown
}

export interface UnreadableView {
  /** The entry of the journal whose payload cannot be read. */
  readonly entry: { readonly seq: number; readonly name: string | null }
  /** The id of the key that is missing; null if another reason keeps it from being read. */
  readonly key: string | null
  /** What cannot be read, why, and what to do. */
  readonly note: string
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
    /** Undefined if there is none, or if it cannot be read. */
    readonly data: unknown
    /** Why its data cannot be read; left out if it can. */
    readonly unreadable?: UnreadableView
  }
}[EntryKind]

/** The run, with what its last entry says of its end or its pause. What cannot be read is marked, and spoils nothing else. */
export async function viewOf(run: Run, last: Entry | undefined, payloads: Payloads): Promise<RunView> {
  const view = rowView(run)
  if (last?.kind === 'paused') return { ...view, unreadable: unreadableOf(last.meta) }
  if (last?.kind !== 'succeeded' && last?.kind !== 'failed') return view
  const { value, unreadable } = await tryToRead(run.id, last, payloads)
  if (unreadable !== null)
    return { ...view, unreadable, lastError: last.kind === 'failed' ? oneLine(unreadable.note) : null }
  const shown = showErrors(value)
  return last.kind === 'succeeded' ? { ...view, output: shown } : { ...view, lastError: oneLine(shown), error: shown }
}

/** The run as it stands in a list: without its output. */
export async function listedView(run: Run, last: Entry | undefined, payloads: Payloads): Promise<RunView> {
  if (last?.kind === 'paused') return viewOf(run, last, payloads)
  if (last?.kind !== 'failed') return rowView(run)
  // What lies elsewhere and cannot be fetched must not spoil the list either.
  const { error: _error, ...view } = await viewOf(run, last, payloads).catch((cause: unknown) => ({
    ...rowView(run),
    lastError: oneLine(cause),
    error: cause,
  }))
  return view
}

/** Tells whether the last entry of a run has to be known to show it. */
export function showsLast({ status }: Run): boolean {
  return status === 'paused' || isTerminal(status)
}

interface Read {
  readonly value: unknown
  readonly unreadable: UnreadableView | null
}

async function tryToRead(runId: string, entry: Entry, payloads: Payloads): Promise<Read> {
  try {
    return { value: await readData(runId, entry, payloads), unreadable: null }
  } catch (error) {
    if (!isHoldfastError(error, 'PAYLOAD_CORRUPT')) throw error
    const { key } = error.details
    const { seq, name } = entry
    return {
      value: undefined,
      unreadable: { entry: { seq, name }, key: typeof key === 'string' ? key : null, note: error.message },
    }
  }
}

function unreadableOf(meta: PausedMeta): UnreadableView | null {
  if (meta.reason !== 'unreadable') return null
  const { entry, key, note } = meta
  return { entry, key, note }
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
    unreadable: null,
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
  const { value, unreadable } = kind === 'issued' ? secret : await tryToRead(runId, entry, payloads)
  // A note stands where it would if nobody had encrypted it.
  const isNote = holdsNote(kind) && typeof value === 'string'
  const shown = isNote ? { meta: { ...meta, note: value }, data: undefined } : { meta, data: showErrors(value) }
  const view = { seq, at: new Date(at), kind, name, ...shown } as JournalEntry
  return unreadable === null ? view : { ...view, unreadable }
}

const secret: Read = { value: undefined, unreadable: null }

export async function readData(runId: string, entry: Entry, payloads: Payloads): Promise<unknown> {
  if (entry.data === null) return undefined
  return payloads.decode(await payloads.fetch(entry.data), placeOfData(runId, entry, payloads))
}

/** The place that the payload of an entry was written for. */
export function placeOfData(runId: string, { seq, kind, name }: Entry, payloads: Payloads): Place {
  return payloads.place(runId, seq, kind, name)
}
