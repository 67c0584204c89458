// The tables of the read-committed store and what is unique in them: those of the Postgres store, as far as the plan needs
// them. What a statement reads or writes here, it reads or writes there.

import type { Entry } from '../../../src/core/model/entry.ts'
import type { WaitRow } from '../../../src/core/rules/messages/unit-of-work.ts'
import type { ChoreRow } from '../../../src/core/model/chore.ts'
import { uniqueText } from '../../../src/core/model/key.ts'
import type { Fate, Message, MessageDraft, DeliveryOutcome } from '../../../src/core/model/message.ts'
import type { Run } from '../../../src/core/model/run.ts'
import type { Broadcast } from '../../../src/core/model/topic.ts'
import type { ProjectionRow } from '../../../src/core/rules/projections/projection-row.ts'
import { copied } from '../../../src/stores/memory/tables/row.ts'
import { Table, type Index } from './table.ts'

export interface RunRow extends Run {
  /** The type that its idempotency key belongs to: that of its start, also when the run goes on as another. */
  readonly startedAs: string
}

export interface EntryRow {
  readonly runId: string
  readonly entry: Entry
}

export interface MessageRow extends Message {
  readonly outcome: DeliveryOutcome
  /** The entry with which the run took it; of one that has a fate, the last that there was. */
  readonly takenBy: number | null
  readonly fate: Fate | null
}

export interface TopicRow {
  /** Empty for the row that has the highest position of all topics that are gone. */
  readonly name: string
  /** That of the last broadcast. */
  readonly position: number
  readonly retainMs: number | null
  /** When to look next whether it is in use. */
  readonly lookAt: number | null
}

export const goneTopics = ''

/** What one transaction appended. */
export interface FeedRow {
  /** Drawn while the runs were locked: two flushes of one run are in order. */
  readonly number: number
  /** [run, first seq, last seq] */
  readonly ranges: readonly (readonly [runId: string, first: number, last: number])[]
  /** That of its last entry; null until the sequencer has seen it. */
  readonly position: number | null
}

export interface SessionRow {
  readonly id: string
  readonly aliveUntil: number
  readonly endedAt: number | null
}

/** One row, which says up to where the feed has positions. */
export interface SequencerRow {
  readonly last: number
}

/** A key, and the run that has it. */
export interface KeyRow {
  /** The type that an idempotency key belongs to; empty for a business key, which has its scope with it. */
  readonly type: string
  readonly key: string
  readonly runId: string
}

export interface Tables {
  readonly runs: Table<RunRow>
  readonly keys: Table<KeyRow>
  readonly journal: Table<EntryRow>
  readonly messages: Table<MessageRow>
  readonly waits: Table<WaitRow>
  readonly topics: Table<TopicRow>
  readonly broadcasts: Table<Broadcast>
  readonly chores: Table<ChoreRow>
  readonly feed: Table<FeedRow>
  readonly sessions: Table<SessionRow>
  readonly sequencer: Table<SequencerRow>
  readonly projections: Table<ProjectionRow>
}

/** `keysAreUnique` is false only where a test wants to see what the indexes are for. */
export function createTables(keysAreUnique: boolean): Tables {
  return {
    runs: new Table('runs', [unique('id', ({ id }) => id), plain('queue', (row) => queueText(row.readiness, row))]),
    keys: new Table<KeyRow>('keys', [{ ...unique<KeyRow>('key', keyText), unique: keysAreUnique }]),
    journal: new Table('journal', [
      unique('place', ({ runId, entry }) => placeText(runId, entry.seq)),
      plain('run', ({ runId }) => runId),
    ]),
    messages: new Table('messages', [
      unique('id', ({ runId, id }) => `${runId} ${id}`),
      unique('position', ({ runId, position }) => placeText(runId, position)),
      plain('run', ({ runId }) => runId),
      plain('fate', ({ fate }) => fate),
    ]),
    waits: new Table('waits', [
      unique('whole', waitText),
      plain('target', ({ kind, target }) => targetText(kind, target)),
    ]),
    topics: new Table('topics', [unique('name', ({ name }) => name)]),
    broadcasts: new Table('broadcasts', [
      unique('id', ({ topic, id }) => JSON.stringify([topic, id])),
      unique('position', ({ topic, position }) => JSON.stringify([topic, position])),
      plain('topic', ({ topic }) => topic),
    ]),
    chores: new Table('chores', [unique<ChoreRow>('target', choreText)]),
    feed: new Table('feed', [
      unique('number', ({ number }) => String(number)),
      unique('position', ({ position }) => (position === null ? null : String(position))),
      plain('unstamped', ({ position }) => (position === null ? 'unstamped' : null)),
    ]),
    sessions: new Table('sessions', [unique('id', ({ id }) => id)]),
    sequencer: new Table('sequencer', [unique('only', () => 'only')]),
    projections: new Table('projections', [unique('part', partText), plain('name', ({ name }) => name)]),
  }
}

export function partText({ name, part }: Pick<ProjectionRow, 'name' | 'part'>): string {
  return `${part} ${name}`
}

function unique<Row>(name: string, key: Index<Row>['key']): Index<Row> {
  return { name, unique: true, key }
}

function plain<Row>(name: string, key: Index<Row>['key']): Index<Row> {
  return { name, unique: false, key }
}

/** A type has no space. */
export function keyText({ type, key }: Pick<KeyRow, 'type' | 'key'>): string {
  return `${type} ${key}`
}

/** The keys that a row has: its business key as long as it lives, and its idempotency key until it is removed. */
export function keysOf(row: RunRow): readonly KeyRow[] {
  const { id: runId, idempotencyKey, startedAs, endedAt, deletedAt } = row
  if (deletedAt !== null) return []
  const key = endedAt === null ? uniqueText(row) : null
  const keys: KeyRow[] = []
  if (key !== null) keys.push({ type: '', key, runId })
  if (idempotencyKey !== null) keys.push({ type: startedAs, key: idempotencyKey, runId })
  return keys
}

export function queueText(readiness: string, { type, version }: { readonly type: string; readonly version: number }) {
  return `${readiness} ${type} ${version}`
}

/** A place of a run's journal or mailbox. */
export function placeText(runId: string, place: number): string {
  return `${runId} ${place}`
}

export function targetText(kind: WaitRow['kind'], target: string): string {
  return `${kind} ${target}`
}

export function choreText({ kind, target }: Pick<ChoreRow, 'kind' | 'target'>): string {
  return `${kind} ${target}`
}

export function waitText({
  kind,
  target,
  runId,
  effect,
}: Omit<WaitRow, 'delivery' | 'openedAt' | 'since' | 'missed'>): string {
  return `${effect} ${runId} ${targetText(kind, target)}`
}

/** Everyone locks rows in this order. */
export function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

/** A row as others may have it: they may change it, and nothing here changes. */
export function runOf(row: RunRow): Run {
  const { startedAs: _startedAs, ...run } = row
  const wakeNames = run.wakeNames === null ? null : [...run.wakeNames]
  return {
    ...run,
    tags: [...run.tags],
    controlRequest: run.controlRequest === null ? null : { ...run.controlRequest },
    wakeNames,
  }
}

export function entryOf({ entry }: EntryRow): Entry {
  return copied(entry)
}

/** A message as it comes into the mailbox of a run. */
export function newMessage(
  { id: runId }: Pick<Run, 'id'>,
  draft: MessageDraft,
  position: number,
  at: number,
  outcome: MessageRow['outcome'],
): MessageRow {
  const { id, kind, name, data, policy } = draft
  const kept = policy === null ? null : { ...policy }
  return { id, runId, kind, name, data, policy: kept, position, at, outcome, takenBy: null, fate: null }
}

export function messageOf(row: MessageRow): Message {
  const { outcome: _outcome, takenBy: _takenBy, fate: _fate, policy, ...message } = row
  return { ...message, policy: policy === null ? null : { ...policy } }
}
