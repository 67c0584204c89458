// Rows as Postgres returns them, and their meaning. This is the only place where the shape of a row is taken on trust. Inside
// the transaction of a user another library reads them, and some return an int8 as a text.

import type { Chore } from '../../../core/model/chore.ts'
import type { Entry } from '../../../core/model/entry.ts'
import { entryOfRow } from '../../../core/rows/entry-row.ts'
import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Run, ControlRequest } from '../../../core/model/run.ts'
import type { Broadcast } from '../../../core/model/topic.ts'
import { damageOf, numberIn, policyIn, policyOf, tagsIn, controlRequestIn } from '../../../core/rows/run-row.ts'
import { wakeNamesIn } from '../../../core/rows/wake-names.ts'
import type { Message } from '../../../store.ts'
import type { Row } from '../execution.ts'

const columns =
  'shard, id, type, version, status, readiness, rank, due, seq, base, inbox, wake_names, watched, control_request, undo, crashes, token, session, ' +
  'deadline, timeout_at, expires_at, key, key_scope, idempotency_key, parent_id, tags, metadata, key_id, feed, created_at, updated_at, ended_at, ' +
  'deleted_at, delete_reason'

/** The columns that `runOf` reads of a run. Named one by one, because a prepared `*` does not survive a new column. */
export function runColumns(alias: string): string {
  return of(alias, columns)
}

const leased = {
  readiness: 'leased',
  due: null,
  expires_at: null,
  ended_at: null,
  deleted_at: null,
  delete_reason: null,
}

/** What is true of nearly all of them. */
const usual = { status: 'running', base: 1, inbox: 0, watched: false, undo: 'none', key_scope: 'workflow', feed: false }

interface Leasing {
  readonly shard: number
  readonly session: string
  /** The type, if it claims no other. */
  readonly only: { readonly type: string; readonly version: number } | undefined
}

/** What the rows of a claim leave out, or have null for. */
export function commonOf({ shard, session, only }: Leasing): Row {
  return { ...leased, ...usual, shard, session, type: only?.type, version: only?.version }
}

/**
 * The columns of a run that a claim leases while it is ready: without what the claim knows, and null where a value is as usual.
 * A value that comes along costs the server a text and us a string, and most of them were the same in every row.
 */
export function leasedColumns(alias: string, isOfOneType: boolean): string {
  const known = new Set([...Object.keys(leased), 'shard', 'session', ...(isOfOneType ? ['type', 'version'] : [])])
  const left = columns.split(', ').filter((name) => !known.has(name))
  return left
    .map((name) => (name in usual ? unlessUsual(alias, name as keyof typeof usual) : `${alias}.${name}`))
    .join(', ')
}

function unlessUsual(alias: string, name: keyof typeof usual): string {
  const value = usual[name]
  return `nullif(${alias}.${name}, ${typeof value === 'string' ? `'${value}'::text` : value}) as ${name}`
}

/**
 * Locks runs of a shard, in the order of their ids, without any other condition. One by one, so that each is looked up by its
 * key: Postgres up to 16 may turn a list into a filter, and read the whole shard to have it in order.
 */
export function lockRuns(schema: string): string {
  return `
    select ${runColumns('run')}
    from (select distinct value::uuid as id from json_array_elements_text($2::text::json) order by id) as requested
      cross join lateral (
        select * from ${schema}.runs as run
        where run.shard = $1::smallint and run.id = requested.id for no key update) as run`
}

/** The columns that `entryOf` reads of an entry. */
export function entryColumnsOf(alias: string): string {
  return of(alias, 'seq, kind, name, meta, data, at, transition_id')
}

function of(alias: string, names: string): string {
  return names
    .split(', ')
    .map((name) => `${alias}.${name}`)
    .join(', ')
}

export function runOf(row: Row): Run {
  return leasedRunOf(row, row)
}

/** A run that a claim has leased; `common` has what its row leaves out. */
export function leasedRunOf(row: Row, common: Row): Run {
  const [tags, controlRequest] = [
    tagsIn(row['tags'] as string | null),
    controlRequestIn(row['control_request'] as string | null),
  ]
  return {
    id: row['id'] as string,
    shard: Number(common['shard']),
    type: (row['type'] ?? common['type']) as string,
    version: numberIn(Number(row['version'] ?? common['version'])),
    key: row['key'] as string | null,
    keyScope: (row['key_scope'] ?? common['key_scope']) as Run['keyScope'],
    idempotencyKey: row['idempotency_key'] as string | null,
    parentId: row['parent_id'] as string | null,
    tags: tags ?? [],
    metadata: row['metadata'] as string | null,
    feed: isTrue(row['feed'] ?? common['feed']),
    keyId: row['key_id'] as string | null,
    status: (row['status'] ?? common['status']) as Run['status'],
    readiness: common['readiness'] as Run['readiness'],
    // Never -0, which Object.is distinguishes from 0.
    priority: 0 - numberIn(Number(row['rank'])),
    due: timeOf(common['due']),
    seq: numberIn(Number(row['seq'])),
    base: numberIn(Number(row['base'] ?? common['base'])),
    inbox: numberIn(Number(row['inbox'] ?? common['inbox'])),
    wakeNames: wakeNamesIn(row['wake_names'] as string | null, Number(row['token'])),
    watched: isTrue(row['watched'] ?? common['watched']),
    controlRequest: controlRequest ?? null,
    undo: (row['undo'] ?? common['undo']) as Run['undo'],
    crashes: numberIn(Number(row['crashes'])),
    token: numberIn(Number(row['token'])),
    session: common['session'] as string | null,
    deadline: timeOf(row['deadline']),
    timeoutAt: timeOf(row['timeout_at']),
    expiresAt: timeOf(common['expires_at']),
    createdAt: numberIn(Number(row['created_at'])),
    updatedAt: numberIn(Number(row['updated_at'])),
    endedAt: timeOf(common['ended_at']),
    deletedAt: timeOf(common['deleted_at']),
    deleteReason: common['delete_reason'] as string | null,
    ...damageOf(tags, controlRequest),
  }
}

export function timeOf(value: unknown): number | null {
  return value === null || value === undefined ? null : numberIn(Number(value))
}

export function controlRequestOf(text: string | null): ControlRequest | null {
  return controlRequestIn(text) ?? null
}

export function entryOf(row: Row): Entry {
  return entryOfRow({
    kind: row['kind'],
    name: row['name'],
    meta: row['meta'] as string | null,
    data: row['data'],
    seq: Number(row['seq']),
    at: Number(row['at']),
    transition: row['transition_id'] as string | null,
  })
}

/** The columns that `messageOf` reads of a message. */
export function messageColumns(alias: string): string {
  return of(alias, 'run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at')
}

export function messageOf(row: Row): Message {
  return {
    id: row['id'] as string,
    runId: row['run_id'] as string,
    kind: row['kind'] as Message['kind'],
    name: row['name'] as string,
    data: row['data'] as string,
    policy: policyOf(row['on_unread'], row['delivery'], timeOf(row['retain_ms'])),
    position: Number(row['position']),
    at: Number(row['at']),
  }
}

/** The columns that `waitOf` reads of a wait. */
export function waitColumns(alias: string): string {
  return of(alias, 'kind, target, run_id, effect, delivery, opened_at, since, missed')
}

export function waitOf(row: Row): WaitRow {
  return {
    kind: row['kind'] as WaitRow['kind'],
    target: row['target'] as string,
    runId: row['run_id'] as string,
    effect: row['effect'] as WaitRow['effect'],
    delivery: row['delivery'] as WaitRow['delivery'],
    openedAt: Number(row['opened_at']),
    since: Number(row['since']),
    missed: timeOf(row['missed']),
  }
}

/** The columns that `choreOf` reads of a chore. */
export function choreColumns(alias: string): string {
  return of(alias, 'kind, target, position, after_opened_at, after_run')
}

export function choreOf(row: Row): Chore {
  const openedAt = timeOf(row['after_opened_at'])
  const runId = row['after_run'] as string | null
  return {
    kind: row['kind'] as Chore['kind'],
    target: row['target'] as string,
    position: Number(row['position']),
    after: openedAt === null || runId === null ? null : { openedAt, runId },
  }
}

/** The columns that `broadcastOf` reads of a broadcast. */
export function broadcastColumns(alias: string): string {
  return of(alias, 'topic, position, id, delivery, data, policy, at, expires_at, taken_by, delivered_to')
}

export function broadcastOf(row: Row): Broadcast {
  return {
    topic: row['topic'] as string,
    position: Number(row['position']),
    id: row['id'] as string,
    delivery: row['delivery'] as Broadcast['delivery'],
    data: row['data'] as string,
    policy: policyIn(row['policy'] as string | null),
    at: Number(row['at']),
    expiresAt: timeOf(row['expires_at']),
    takenBy: row['taken_by'] as string | null,
    deliveredTo: Number(row['delivered_to']),
  }
}

/** Some libraries give a boolean as text. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 't' || value === 'true'
}
