// Messages that were given up because their run had ended, for people who look after them. They stay among the messages of
// their run; an index has them in the order of their time.

import type { Fate } from '../../../core/model/message.ts'
import type { RunStatus } from '../../../core/model/run.ts'
import type { DeadLetter, DeadLetterFilter, Page } from '../../../store.ts'
import type { Connection } from '../driver/connection.ts'
import type { Value } from '../driver/driver.ts'
import type { Query } from './find.ts'
import { messageOf } from '../schema/rows.ts'

export function findDeadLetters(db: Connection, filter: DeadLetterFilter, page: Page): readonly DeadLetter[] {
  const after = page.after === undefined ? null : placeOf(db, page.after)
  // No page follows a message that was never sent.
  if (after === undefined) return []
  const { sql, values } = deadLetterQuery(filter, page.limit, after)
  return db.all(sql, values).map((row) => ({
    ...messageOf(row),
    status: row['run_status'] as RunStatus,
    endedAt: row['run_ended_at'] as number | null,
  }))
}

/** The place of a dead letter in the order of pages. */
interface DeadLetterPlace {
  readonly at: number
  readonly runId: string
  readonly id: string
}

export function deadLetterQuery(
  { name, runId }: DeadLetterFilter,
  limit: number,
  after: DeadLetterPlace | null,
): Query {
  const conditions = [`m.shard = 0 and m.fate = 'dead'`]
  const values: Value[] = []
  const add = (condition: string, ...given: readonly Value[]): void => {
    conditions.push(condition)
    values.push(...given)
  }
  if (name !== undefined) add('m.name = ?', name)
  if (runId !== undefined) add('m.run_id = ?', runId)
  if (after !== null) {
    // Only the first condition can use the index.
    add('m.at <= ?', after.at)
    add('(m.at < ? or m.run_id < ? or (m.run_id = ? and m.id < ?))', after.at, after.runId, after.runId, after.id)
  }
  const sql = `
    select m.*, runs.status as run_status, runs.ended_at as run_ended_at
    from messages as m indexed by messages_dead cross join runs on runs.shard = 0 and runs.id = m.run_id
    where ${conditions.join(' and ')}
    order by m.at desc, m.run_id desc, m.id desc limit ?`
  return { sql, values: [...values, limit] }
}

const placeSql = 'select at from messages indexed by messages_id where shard = 0 and run_id = ? and id = ?'

/** The letter may be dead no more since the page before it was read: its place is known all the same. */
function placeOf(db: Connection, after: string): DeadLetterPlace | undefined {
  const space = after.indexOf(' ')
  const runId = after.slice(0, space)
  const id = after.slice(space + 1)
  const row = db.get(placeSql, [runId, id])
  return row === undefined ? undefined : { at: row['at'] as number, runId, id }
}

// The index is named, or Turso walks all that are dead.
export const settleSql = `
  update messages indexed by messages_id set fate = ? where shard = 0 and run_id = ? and id = ? and fate = 'dead'`

export function settleDeadLetter(db: Connection, letter: Pick<DeadLetter, 'runId' | 'id'>, fate: Fate): boolean {
  return db.run(settleSql, [fate, letter.runId, letter.id]) === 1
}
