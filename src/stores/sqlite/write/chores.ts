// Takes chores, one at a time. A chore is taken in a transaction of its own, so that a page that fails does not come first
// again and again: others are taken before it. Where there is no chore, a topic is looked at that nobody may use any more.

import { choreTakenMs, nextChoreInMs, type Chore } from '../../../core/model/chore.ts'
import { doChore } from '../../../core/rules/messages/exchange.ts'
import { tidyTopic } from '../../../core/rules/messages/unused-topics.ts'
import type { Batch } from './batch.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'
import type { Connection } from '../driver/connection.ts'
import { choreOf } from '../schema/rows.ts'
import { lookAtTopicSql } from './topics.ts'

// The index is named for Turso, which does not find it by itself; SQLite would.
export const dueChoreSql = `
  select * from chores indexed by chores_due where shard = 0 and due <= ? order by due, kind, target limit 1`

/** One statement: every worker asks it once a minute. */
export const nextTaskSql = `
  select (select due from chores indexed by chores_due where shard = 0 order by due limit 1) as due,
    exists (select 1 from topics indexed by topics_look where shard = 0 and look_at is not null and look_at <= ?) as topic`

// The index is named for Turso.
export const dueTopicSql = `
  select name from topics indexed by topics_look where shard = 0 and look_at is not null and look_at <= ?
  order by look_at, name limit 1`

/** A chore, or the name of a topic that is to be looked at. */
type Task = Chore | string

/** Whether there is something to do, and when the next chore may be taken: looks without the write lock. */
export function lookForTask(
  db: Connection,
  now: number,
): { readonly isDue: boolean; readonly nextInMs: number | null } {
  const row = db.get(nextTaskSql, [now])
  const due = row?.['due'] as number | null
  const nextInMs = nextChoreInMs(due === null ? [] : [due], now)
  return { isDue: nextInMs === 0 || row?.['topic'] === 1, nextInMs }
}

/** It belongs to the caller for a while. */
export function takeTask({ db, now }: Batch): Task | undefined {
  const row = db.get(dueChoreSql, [now])
  if (row === undefined) {
    const topic = db.get(dueTopicSql, [now])?.['name'] as string | undefined
    if (topic !== undefined) db.run(lookAtTopicSql, [now + choreTakenMs, topic])
    return topic
  }
  const chore = choreOf(row)
  const sql = 'update chores set due = ? where shard = 0 and kind = ? and target = ?'
  db.run(sql, [now + choreTakenMs, chore.kind, chore.target])
  return chore
}

/** Does one page of it. */
export function doPage(batch: Batch, task: Task): void {
  const unitOfWork = new SqliteUnitOfWork(batch)
  if (typeof task === 'string') tidyTopic(unitOfWork, task)
  else doChore(unitOfWork, task)
}
