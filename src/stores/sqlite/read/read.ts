// Reads that change nothing.

import type { Entry } from '../../../core/model/entry.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import type { EntryMark } from '../../../core/rules/commit.ts'
import type { Run } from '../../../core/model/run.ts'
import {
  messagesAtOnce,
  type Change,
  type FeedEnd,
  type Loaded,
  type LoadRequest,
  type MailboxRequest,
  type Message,
} from '../../../store.ts'
import { cutBy, loadBudgets, type LoadBudget } from '../../../core/rules/claims/load-budget.ts'
import type { Connection } from '../driver/connection.ts'
import type { Row, Value } from '../driver/driver.ts'
import { entryOf, messageOf, runOf, type FeedRange } from '../schema/rows.ts'

export function readRun(db: Connection, id: string): Run | undefined {
  const row = db.get('select * from runs where shard = 0 and id = ?', [id])
  return row === undefined ? undefined : runOf(row)
}

function readEntries(db: Connection, { runId, after, limit }: LoadRequest): readonly Entry[] {
  const sql = 'select * from journal where shard = 0 and run_id = ? and seq > ? order by seq limit ?'
  return db.all(sql, [runId, after, limit]).map(entryOf)
}

/** Who appended the entry of that place, and when; undefined if there is no such entry. */
export function entryMarkAt(db: Connection, runId: string, seq: number): EntryMark | undefined {
  const sql = 'select transition_id, at from journal where shard = 0 and run_id = ? and seq = ?'
  const row = db.get(sql, [runId, seq])
  return row === undefined ? undefined : entryMarkOf(row)
}

export function entryMarkOf(row: Row): EntryMark {
  return { transition: row['transition_id'] as string | null, at: row['at'] as number }
}

/** Within the bound, if there is one: then payloads are measured before they are read, which reads none of their pages. */
export function load(
  db: Connection,
  requests: readonly LoadRequest[],
  mostBytes: number | undefined,
): readonly Loaded[] {
  const bounds = loadBudgets(mostBytes)
  return requests.map((request) => {
    const { runId, latest, messages: named, messagesAfter = 0 } = request
    const entries = latest === undefined ? readPage(db, request, bounds.entries) : readLatest(db, runId, latest)
    const messages =
      named === undefined
        ? messagePage(db, runId, messagesAfter, bounds.messages)
        : messagesNamed(db, runId, named, bounds.messages)
    return { entries, messages, ...cutBy(bounds) }
  })
}

/** This many rows are read without measuring them first: most journals and mailboxes are no longer. */
const glance = 8

/** The first rows of a list that fit into a bound. */
function rowsWithin(
  db: Connection,
  bound: LoadBudget,
  from: string,
  values: readonly Value[],
  limit: number,
): readonly Row[] {
  const sql = `select * from ${from} limit ? offset ?`
  if (limit === 0 || bound.isReached) return []
  if (bound.isOpen) return db.all(sql, [...values, limit, 0])
  const first = db.all(sql, [...values, Math.min(limit, glance), 0])
  const taken = bound.take(first, rowBytes)
  if (first.length < glance || limit <= glance || bound.isReached) return taken
  const rest = fitting(db, bound, from, [...values, limit - glance, glance])
  return rest === 0 ? taken : [...taken, ...db.all(sql, [...values, rest, glance])]
}

/** How many of these rows fit. Mostly all of them do, and a sum says so: it reads the heads of rows, and no payloads. */
function fitting(db: Connection, bound: LoadBudget, from: string, values: readonly Value[]): number {
  const sizes = `select coalesce(octet_length(data), 0) as bytes from ${from} limit ? offset ?`
  const sum = db.get(`select count(*) as items, coalesce(sum(bytes), 0) as bytes from (${sizes})`, values)
  const { items, bytes } = sum as { readonly items: number; readonly bytes: number }
  if (!bound.fits(bytes)) return bound.take(db.all(sizes, values), (row) => row['bytes'] as number).length
  bound.count(bytes)
  return items
}

function rowBytes(row: Row): number {
  const data = row['data'] as string | null
  return data === null ? 0 : Buffer.byteLength(data)
}

const pageSql = 'journal where shard = 0 and run_id = ? and seq > ? order by seq'

function readPage(db: Connection, { runId, after, limit }: LoadRequest, bound: LoadBudget): readonly Entry[] {
  return rowsWithin(db, bound, pageSql, [runId, after], limit).map(entryOf)
}

function readLatest(db: Connection, runId: string, { kind, name }: Latest): readonly Entry[] {
  const sql = `
    select * from journal where shard = 0 and run_id = ? and kind = ? and name = ? order by seq desc limit 1`
  return db.all(sql, [runId, kind, name]).map(entryOf)
}

type Latest = NonNullable<LoadRequest['latest']>

// The indexes are named: without statistics SQLite takes one for the other, and Turso none.

const unread = `messages indexed by messages_unread
  where shard = 0 and run_id = ? and taken_by is null and position > ? order by position`

export const messagePageSql = `select * from ${unread} limit ? offset ?`

function messagePage(db: Connection, runId: string, after: number, bound: LoadBudget): readonly Message[] {
  return rowsWithin(db, bound, unread, [runId, after], messagesAtOnce).map(messageOf)
}

const named = (columns: string): string => `
  select ${columns} from messages indexed by messages_named
  where shard = 0 and run_id = ? and name = ? and taken_by is null order by position limit ?`

export const namedMessagesSql = named('*')
const namedSizesSql = named('position, octet_length(data) as bytes')
const placedMessagesSql = 'select * from messages where shard = 0 and run_id = ? and position = ?'

/** More names than this are measured first. */
const fewNames = 8

function messagesNamed(
  db: Connection,
  runId: string,
  { names, limit }: MailboxRequest,
  bound: LoadBudget,
): readonly Message[] {
  if (bound.isReached) return []
  const distinct = [...new Set(names)]
  if (bound.isOpen)
    return inOrder(distinct.flatMap((name) => db.all(namedMessagesSql, [runId, name, limit]))).map(messageOf)
  if (distinct.length <= fewNames) {
    // Mostly there is one message, of one name.
    const first = distinct.map((name) => db.all(namedMessagesSql, [runId, name, Math.min(limit, 2)]))
    if (limit < 2 || first.every(({ length }) => length < 2)) {
      return bound.take(inOrder(first.flat()), rowBytes).map(messageOf)
    }
  }
  const sizes = distinct.flatMap((name) => db.all(namedSizesSql, [runId, name, limit]))
  const taken = bound.take(inOrder(sizes), (row) => row['bytes'] as number)
  return taken.flatMap((row) => db.all(placedMessagesSql, [runId, row['position'] as number])).map(messageOf)
}

function inOrder(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => (a['position'] as number) - (b['position'] as number))
}

/** The feed after a position: whole rows of it are read, and cut to what was asked for. */
export function readChanges(db: Connection, after: number, limit: number): readonly Change[] {
  const changes: Change[] = []
  const runs = new Map<string, FedRun>()
  let from = after
  while (changes.length < limit) {
    const row = db.get(
      'select position, entries from feed where shard = 0 and position > ? order by position limit 1',
      [from],
    )
    if (row === undefined) break
    const last = row['position'] as number
    const ranges = JSON.parse(row['entries'] as string) as FeedRange[]
    let position = last - ranges.reduce((sum, [, first, end]) => sum + end - first + 1, 0)
    for (const [runId, first, end] of ranges) {
      const count = end - first + 1
      const skipped = Math.min(count, Math.max(0, from - position))
      const wanted = Math.min(count - skipped, limit - changes.length)
      if (wanted > 0) {
        const entries = readEntries(db, { runId, after: first - 1 + skipped, limit: wanted })
        const run = fedRun(db, runs, runId)
        entries.forEach((entry, index) => changes.push({ position: position + skipped + index + 1, ...run, entry }))
      }
      position += count
    }
    from = last
  }
  return changes
}

type FedRun = Pick<Change, 'runId' | 'type' | 'version' | 'key'>

/** What a reader of the feed learns of a run. */
function fedRun(db: Connection, known: Map<string, FedRun>, runId: string): FedRun {
  const found = known.get(runId)
  if (found !== undefined) return found
  const row = db.get('select type, version, idempotency_key from runs where shard = 0 and id = ?', [runId])
  // The doctor reads the feed, too, and reports a run that is not there.
  const run = {
    runId,
    type: (row?.['type'] ?? '') as string,
    version: (row?.['version'] ?? 0) as number,
    key: (row?.['idempotency_key'] ?? null) as string | null,
  }
  known.set(runId, run)
  return run
}

/** The last position of the feed: it is given in the transaction of its entry. */
export function readFeedEnd(db: Connection): FeedEnd {
  const row = db.get('select coalesce(max(position), 0) as position from feed where shard = 0', [])
  return { position: row?.['position'] as number, isComplete: true }
}

/** What the secrets of completion tokens are made with. */
export function readTokenKey(db: Connection): string {
  const row = db.get('select token_key from secrets where shard = 0', [])
  if (row !== undefined) return row['token_key'] as string
  // The same one cannot be made again, and whatever takes its place could be guessed.
  throw new HoldfastError(
    'STORE_REFUSED',
    'The table "secrets" has lost its row. Restore it from a backup of the file.',
  )
}
