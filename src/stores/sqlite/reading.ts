// Reads that change nothing.

import type { Entry } from '../../core/entry.ts'
import type { Run } from '../../core/run.ts'
import type { Change, Loaded, LoadRequest } from '../../store.ts'
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
  const { runId } = request
  const sql = `
    select id, name, data, position, at from messages
    where shard = 0 and run_id = ? and taken_by is null order by position`
  const messages = db.all(sql, [runId]).map((row) => messageOf(row, runId))
  return { entries: request.limit === 0 ? [] : readEntries(db, request), messages }
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
