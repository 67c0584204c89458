// Reads that change nothing.

import type { Entry } from '../../core/entry.ts'
import type { Run } from '../../core/run.ts'
import { mailAtOnce, type Change, type Loaded, type LoadRequest, type MailRequest, type Message } from '../../store.ts'
import type { FeedRange } from './batch.ts'
import type { Connection } from './connection.ts'
import { entryOf, messageOf, runOf } from './rows.ts'

export function readRun(db: Connection, id: string): Run | undefined {
  const row = db.get('select * from runs where shard = 0 and id = ?', [id])
  return row === undefined ? undefined : runOf(row)
}

function readEntries(db: Connection, { runId, after, limit }: LoadRequest): readonly Entry[] {
  const sql = 'select * from journal where shard = 0 and run_id = ? and seq > ? order by seq limit ?'
  return db.all(sql, [runId, after, limit]).map(entryOf)
}

/** The id of the transition that appended the entry there first; undefined if there is no such entry. */
export function transitionAt(db: Connection, runId: string, seq: number): string | null | undefined {
  const sql = 'select transition_id from journal where shard = 0 and run_id = ? and seq = ?'
  return db.get(sql, [runId, seq])?.['transition_id'] as string | null | undefined
}

export function load(db: Connection, request: LoadRequest): Loaded {
  const { runId, limit, latest, mail } = request
  const entries = latest === undefined ? (limit === 0 ? [] : readEntries(db, request)) : readLatest(db, runId, latest)
  return { entries, messages: mail === undefined ? firstMail(db, runId) : mailNamed(db, runId, mail) }
}

function readLatest(db: Connection, runId: string, { kind, name }: Latest): readonly Entry[] {
  const sql = `
    select * from journal where shard = 0 and run_id = ? and kind = ? and name = ? order by seq desc limit 1`
  return db.all(sql, [runId, kind, name]).map(entryOf)
}

type Latest = NonNullable<LoadRequest['latest']>

// The indexes are named: without statistics SQLite takes one for the other, and Turso none.

export const firstMailSql = `
  select * from messages indexed by messages_unread
  where shard = 0 and run_id = ? and taken_by is null order by position limit ${mailAtOnce}`

function firstMail(db: Connection, runId: string): readonly Message[] {
  return db.all(firstMailSql, [runId]).map(messageOf)
}

export const namedMailSql = `
  select * from messages indexed by messages_named
  where shard = 0 and run_id = ? and name = ? and taken_by is null order by position limit ?`

function mailNamed(db: Connection, runId: string, { names, limit }: MailRequest): readonly Message[] {
  const found = [...new Set(names)].flatMap((name) => db.all(namedMailSql, [runId, name, limit]).map(messageOf))
  return found.sort((a, b) => a.position - b.position)
}

/** The feed after a position: whole rows of it are read, and cut to what was asked for. */
export function readChanges(db: Connection, after: number, limit: number): readonly Change[] {
  const changes: Change[] = []
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
        entries.forEach((entry, index) => changes.push({ position: position + skipped + index + 1, runId, entry }))
      }
      position += count
    }
    from = last
  }
  return changes
}
