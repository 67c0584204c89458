// A run and its journal as the user sees them: times are dates, payloads are decoded.

import { damagedRow, type Place } from '../../core/payload/codec.ts'
import { engineNote, unreadableNote } from '../../core/rows/engine-notes.ts'
import type { Drift, Entry, EntryKind, PausedMeta } from '../../core/model/entry.ts'
import { showErrors } from '../../core/payload/error-data.ts'
import { isHoldfastError, messageOf } from '../../core/errors/error.ts'
import type { KeyScope } from '../../core/model/key.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { controlRequestPlace, entryPlace } from '../../core/payload/place.ts'
import { metadataIn } from '../../core/rows/run-row.ts'
import { isTerminal, type PauseReason, type Run, type RunStatus, type ControlRequest } from '../../core/model/run.ts'

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
  readonly controlRequest: ControlRequestView | null
  /** Why it is paused; null if it is not. */
  readonly pause: PauseView | null
  readonly deletedAt: Date | null
  readonly deleteReason: string | null
  /** Why it gave up, on one line. */
  readonly lastError: string | null
  /**
   * What keeps this from being shown, or the run from going on: its output or error cannot be read here, its row is damaged, or
   * it is paused because a worker could not read what it needs. Null if all is well.
   */
  readonly unreadable: UnreadableView | null
  /** What it returned, once it has succeeded. */
  readonly output?: unknown
  /** Why it gave up, once it has failed. `JSON.stringify` shows errors with name, message and cause. */
  readonly error?: unknown
}

export interface UnreadableView {
  /** The entry of the journal whose payload cannot be read; null if it is the row of the run itself. */
  readonly entry: { readonly seq: number; readonly name: string | null } | null
  /** The id of the key that is missing; null if another reason keeps it from being read. */
  readonly key: string | null
  /** What cannot be read, why, and what to do. */
  readonly note: string
}

/** Why a run is paused, and since when. `note` says it in words: of a drift it is the whole diff, in several lines. */
export type PauseView =
  | {
      readonly reason: PauseReason
      /** Null if nothing was said, or if it cannot be read here. */
      readonly note: string | null
      readonly at: Date
    }
  | { readonly reason: 'unreadable'; readonly note: string; readonly at: Date }
  | ({ readonly reason: 'drift'; readonly note: string; readonly at: Date } & Pick<Drift, 'recorded' | 'found'>)

export interface ControlRequestView {
  readonly kind: ControlRequest['kind']
  readonly reason: string | null
  readonly at: Date
}

/** An entry as the user reads it: its `kind` says what `name` and `meta` are. */
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

/** The run with its end or its pause, as its last entry records it. A payload that cannot be read is marked; the rest is shown. */
export async function viewOf(run: Run, last: Entry | undefined, payloads: Payloads): Promise<RunView> {
  const view = rowView(run)
  if (last?.kind === 'paused') {
    const pause = run.status === 'paused' ? await pauseView(run.id, last, payloads) : null
    return { ...view, pause, unreadable: unreadableOf(last.meta, payloads) ?? view.unreadable }
  }
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
  // An error that was offloaded and cannot be fetched must not fail the whole list.
  const { error: _error, ...view } = await viewOf(run, last, payloads).catch((cause: unknown) => ({
    ...rowView(run),
    lastError: oneLine(cause),
    error: cause,
  }))
  return view
}

/** Whether the last entry of a run has to be known to show it. */
export function showsLast({ status }: Run): boolean {
  return status === 'paused' || isTerminal(status)
}

interface Read {
  readonly value: unknown
  readonly unreadable: UnreadableView | null
}

async function tryToRead(runId: string, entry: Entry, payloads: Payloads): Promise<Read> {
  const { seq, name } = entry
  try {
    return { value: await readData(runId, entry, payloads), unreadable: null }
  } catch (error) {
    if (!isHoldfastError(error, 'PAYLOAD_CORRUPT')) throw error
    const { key } = error.details
    return {
      value: undefined,
      unreadable: { entry: { seq, name }, key: typeof key === 'string' ? key : null, note: error.message },
    }
  }
}

function unreadableOf(meta: PausedMeta, payloads: Payloads): UnreadableView | null {
  if (meta.reason !== 'unreadable') return null
  const { entry, key, note } = meta
  return { entry, key, note: payloads.areBound ? unreadableNote(meta) : note }
}

async function pauseView(runId: string, entry: Noted & { kind: 'paused' }, payloads: Payloads): Promise<PauseView> {
  const at = new Date(entry.at)
  const { meta } = entry
  if (meta.reason === 'drift') {
    const { reason, message, recorded, found } = meta
    return { reason, note: message, at, recorded, found }
  }
  if (meta.reason === 'unreadable') return { reason: meta.reason, note: unreadableOf(meta, payloads)?.note ?? '', at }
  // A note that lies elsewhere and cannot be fetched now must not hide the run.
  const noted = await notedView(runId, entry, payloads).catch(() => null)
  const note = noted?.kind === 'paused' && 'note' in noted.meta ? noted.meta.note : null
  return { reason: meta.reason, note, at }
}

function rowView(run: Run): RunView {
  const {
    id,
    type,
    version,
    status,
    key,
    keyScope,
    idempotencyKey,
    parentId,
    tags,
    priority,
    crashes,
    controlRequest,
  } = run
  const metadata = metadataIn(run.metadata)
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
    metadata: metadata ?? {},
    priority,
    createdAt: new Date(run.createdAt),
    updatedAt: new Date(run.updatedAt),
    endedAt: dateOf(run.endedAt),
    dueAt: isTerminal(status) ? null : dateOf(run.due),
    crashes,
    controlRequest:
      controlRequest === null
        ? null
        : { kind: controlRequest.kind, reason: controlRequest.reason, at: new Date(controlRequest.at) },
    pause: null,
    deletedAt: dateOf(run.deletedAt),
    deleteReason: run.deleteReason,
    lastError: null,
    unreadable: damagedColumns([...(run.damaged ?? []), ...(metadata === undefined ? ['metadata'] : [])]),
  }
}

/** The columns of a damaged row are shown as empty, and named. */
function damagedColumns(columns: readonly string[]): UnreadableView | null {
  if (columns.length === 0) return null
  const note =
    `The row of this run is damaged: ${columns.join(' and ')} ${columns.length === 1 ? 'is' : 'are'} not as the engine ` +
    'writes them, and shown as empty. Restore the row.'
  return { entry: null, key: null, note }
}

const longestSummary = 200

/** An error as a text. */
function oneLine(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${messageOf(error)}` : messageOf(error)
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > longestSummary ? `${line.slice(0, longestSummary - 1)}…` : line
}

function dateOf(time: number | null): Date | null {
  return time === null ? null : new Date(time)
}

export async function entryView(runId: string, entry: Entry, payloads: Payloads): Promise<JournalEntry> {
  if (entry.kind === 'paused' || entry.kind === 'resumed' || entry.kind === 'retried') {
    return notedView(runId, entry, payloads)
  }
  const { seq, at, kind, name, meta } = entry
  // A reader of a journal must not be able to complete its waits.
  const { value, unreadable } = kind === 'issued' ? secret : await tryToRead(runId, entry, payloads)
  const view = { seq, at: new Date(at), kind, name, meta, data: showErrors(value) } as JournalEntry
  return unreadable === null ? view : { ...view, unreadable }
}

type Noted = Extract<Entry, { kind: 'paused' | 'resumed' | 'retried' }>

/**
 * An entry that holds a note. The note is shown in its meta, encrypted or not. A codec that encrypts notes refuses one in plain text,
 * unless it also reads payloads that were written before encryption (`readPlain`).
 */
async function notedView(runId: string, entry: Noted, payloads: Payloads): Promise<JournalEntry> {
  const { seq, kind, name, data } = entry
  const own = engineNote(entry.meta)
  const plain = 'note' in entry.meta ? entry.meta.note : null
  const isVouchedFor = payloads.areBound && own === undefined && data === null && plain !== null
  const { value, unreadable } = await tryToRead(
    runId,
    isVouchedFor ? { ...entry, data: JSON.stringify(plain) } : entry,
    payloads,
  )
  // A command that only looks is given the error as the value.
  const unread =
    unreadable ?? (isHoldfastError(value) ? { entry: { seq, name }, key: null, note: value.message } : null)
  const shown = typeof value === 'string' ? value : payloads.areBound ? (own ?? null) : plain
  const isDrift = entry.kind === 'paused' && entry.meta.reason === 'drift'
  const meta = isDrift ? entry.meta : { ...entry.meta, note: shown }
  const view = { seq, at: new Date(entry.at), kind, name, meta, data: undefined } as JournalEntry
  return unread === null ? view : { ...view, unreadable: unread }
}

const secret: Read = { value: undefined, unreadable: null }

export async function readData(runId: string, entry: Entry, payloads: Payloads): Promise<unknown> {
  if (entry.kind === 'damaged')
    throw damagedRow(placeOfData(runId, entry, payloads), `entry ${entry.seq}`, entry.meta.why)
  if (entry.data === null) return undefined
  return payloads.decode(await payloads.fetch(entry.data), placeOfData(runId, entry, payloads))
}

/** The place that the payload of an entry was written for. */
export function placeOfData(runId: string, entry: Entry, payloads: Payloads): Place {
  const { seq, kind, meta } = entry
  // The store paused the run in place of a holder that was asked to.
  const isRequested = kind === 'paused' && 'sealedFor' in meta && meta.sealedFor !== undefined
  return isRequested
    ? controlRequestPlace(payloads.namespace, runId, meta.sealedFor)
    : entryPlace(payloads.namespace, runId, seq, entry)
}
