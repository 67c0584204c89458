// Does the chores that an end or a broadcast left: see `core/model/chore.ts`. A chore is taken in a statement of its own, so
// that other workers take another one, and so that a page that fails does not come first again and again. Nor does a chore
// whose run or topic another transaction has locked: it is left until it may be taken again, and the next one is done
// meanwhile. Where there is none, a topic is looked at that nobody may use any more. Receivers whose rows are locked, or that
// a policy refuses to change, are skipped.

import { choreTakenMs, nextChoreInMs, type Chore } from '../../../core/model/chore.ts'
import { doChore } from '../../../core/rules/messages/exchange.ts'
import { tidyTopic } from '../../../core/rules/messages/unused-topics.ts'
import type { ChoresDone } from '../../../store.ts'
import { PostgresUnitOfWork } from './unit-of-work.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeRunner } from './exchange.ts'
import type { Execution, Transactions } from '../execution.ts'
import type { RefusedOthers } from './refused-others.ts'
import { choreColumns, choreOf, timeOf } from '../schema/rows.ts'
import { hasMetLock, type LockPolicy } from '../commit/locked-items.ts'
import { everyShard } from '../schema/shards.ts'
import { LockRequest } from './lock-request.ts'

export interface ChoreQueries {
  /** Does one page of one chore, if there is one to be taken. */
  doOne(db: Transactions): Promise<ChoresDone>
}

export function createChoreQueries(dialect: Dialect, exchange: ExchangeRunner, refused: RefusedOthers): ChoreQueries {
  const { schema, now, skipLocked } = dialect
  const take = statement(
    'chore.pick',
    `
    with clock as materialized (select ${now} as now),
    picked as materialized (
      select chore.kind, chore.target from ${schema}.chores as chore
      where chore.shard = $1::smallint and chore.due <= (select now from clock)
      order by chore.due, chore.kind, chore.target limit 1 for no key update ${skipLocked})
    update ${schema}.chores as chore set due = now + ${choreTakenMs} from picked cross join clock
    where chore.shard = $1::smallint and chore.kind = picked.kind and chore.target = picked.target
    returning ${choreColumns('chore')}`,
  )
  const takeTopic = statement(
    'chore.topic',
    `
    with clock as materialized (select ${now} as now),
    picked as materialized (
      select topic.name from ${schema}.topics as topic
      where topic.shard = $1::smallint and topic.look_at is not null and topic.look_at <= (select now from clock)
      order by topic.look_at, topic.name limit 1 for no key update ${skipLocked})
    update ${schema}.topics as topic set look_at = now + ${choreTakenMs} from picked cross join clock
    where topic.shard = $1::smallint and topic.name = picked.name
    returning topic.name`,
  )
  const nextDue = statement(
    'chore.next',
    `select (select min(due) from ${schema}.chores where shard = $1::smallint) - ${now} as ms`,
  )
  const time = statement([], `select ${now} as now, $1::smallint as shard`)
  let next = 0

  /** The chore; or, if there is none, a topic to look at; or when the next chore may be taken. */
  async function takeOne(db: Transactions): Promise<Chore | { readonly topic: string } | number | null> {
    const shards = everyShard(dialect)
    // Each time from the next shard on, so that none of them waits for all chores of another.
    next = (next + 1) % shards.length
    const inTurn = [...shards.slice(next), ...shards.slice(0, next)]
    for (const shard of inTurn) {
      const [row] = await db.alone((x) => x.execute(take, [shard]), 'chore.pick-commit')
      if (row !== undefined) return choreOf(row)
    }
    for (const shard of inTurn) {
      const [row] = await db.alone((x) => x.execute(takeTopic, [shard]), 'chore.topic-commit')
      if (row !== undefined) return { topic: row['name'] as string }
    }
    const rows = await db.alone((x) => Promise.all(shards.map((shard) => x.execute(nextDue, [shard]))))
    const times = rows.flatMap(([row]) => timeOf(row?.['ms']) ?? [])
    return nextChoreInMs(times, 0)
  }

  return {
    async doOne(db) {
      const taken = await takeOne(db)
      if (taken === null || typeof taken === 'number') return { worked: false, nextInMs: taken }
      const doPage = (lockPolicy: LockPolicy): Promise<void> => {
        const lockRequest = new LockRequest()
        if ('topic' in taken) lockRequest.lookAtTopic(taken.topic)
        else lockRequest.goOn(taken)
        const perform = (x: Execution): Promise<void> =>
          exchange.perform(x, {
            end: 'chore',
            lockRequest,
            inUserTransaction: false,
            lockPolicy,
            look: async () => ({ now: Number((await x.execute(time, [0]))[0]?.['now']) }),
            lend: (found, { now: time }, crowds) => new PostgresUnitOfWork(found, time, crowds),
            decide: (unitOfWork, _seen, _made, guard) =>
              guard.decide(0, () => {
                if ('topic' in taken) tidyTopic(unitOfWork, taken.topic)
                else doChore(unitOfWork, taken)
              }),
          })
        return refused.spare(db, lockRequest, () => db.transaction('chore.commit', perform, { patient: false }))
      }
      const unlessLocked = (error: unknown): void => {
        if (!hasMetLock(error)) throw error
      }
      // Most locks are ours, and gone by then. Where no row can be skipped, the page is tried again later.
      await doPage('wait').catch(async (error: unknown) => {
        unlessLocked(error)
        if (skipLocked !== '') await doPage('pass over').catch(unlessLocked)
      })
      return { worked: true, nextInMs: null }
    },
  }
}
