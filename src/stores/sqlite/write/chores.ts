// Takes chores, one at a time. A chore is taken in a transaction of its own, so that a page that fails does not come first
// again and again: others are taken before it.

import { choreTakenMs, nextChoreInMs, type Chore } from '../../../core/model/chore.ts'
import { doChore } from '../../../core/rules/messages/exchange.ts'
import type { Batch } from './batch.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'
import type { Connection } from '../driver/connection.ts'
import { choreOf } from '../schema/rows.ts'

// The index is named for Turso, which does not find it by itself; SQLite would.
export const dueChoreSql = `
  select * from chores indexed by chores_due where shard = 0 and due <= ? order by due, kind, target limit 1`

const nextChoreSql = 'select due from chores indexed by chores_due where shard = 0 order by due limit 1'

/** When the next may be taken: looks without the write lock. */
export function nextInMsOf(db: Connection, now: number): number | null {
  return nextChoreInMs(
    db.all(nextChoreSql, []).map((row) => row['due'] as number),
    now,
  )
}

/** The chore belongs to the caller for a while. */
export function takeChore({ db, now }: Batch): Chore | undefined {
  const row = db.get(dueChoreSql, [now])
  if (row === undefined) return undefined
  const chore = choreOf(row)
  const sql = 'update chores set due = ? where shard = 0 and kind = ? and target = ?'
  db.run(sql, [now + choreTakenMs, chore.kind, chore.target])
  return chore
}

/** Does one page of it. */
export function doPage(batch: Batch, chore: Chore): void {
  doChore(new SqliteUnitOfWork(batch), chore)
}
