// Messages that were given up because their run had ended, for people who look for them: the newest first. They have an index
// of their own, which is short because there are few of them.

import { isRunId } from '../../../core/model/run-id.ts'
import type { Fate } from '../../../core/model/message.ts'
import type { Run } from '../../../core/model/run.ts'
import type { DeadLetter, DeadLetterFilter, Page } from '../../../store.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { messageColumns, messageOf, timeOf } from '../schema/rows.ts'
import { everyShard, shardOfRun } from '../schema/shards.ts'

export interface DeadLetterQueries {
  find(x: Execution, filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]>
  /** False if it was not dead. */
  settle(x: Execution, letter: Pick<DeadLetter, 'runId' | 'id'>, fate: Fate): Promise<boolean>
}

export function createDeadLetterQueries(dialect: Dialect): DeadLetterQueries {
  const { schema } = dialect
  const place = statement(
    'dead.read',
    `
    select at from ${schema}.messages
    where shard = $1::smallint and run_id = ($2::text::json ->> 'run'::text)::uuid and id = $2::text::json ->> 'id'::text`,
  )
  const given = (field: string, type: string): string => `($2::text::json ->> '${field}'::text)::${type}`
  const read = (conditions: readonly string[]) =>
    statement(
      'dead.read',
      `
    select ${messageColumns('message')}, run.status, run.ended_at from (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.fate = 'dead' ${conditions.map((one) => `and ${one}`).join(' ')}
      order by message.at desc, message.run_id desc, message.id collate "C" desc limit ${given('limit', 'bigint')}
    ) as message cross join lateral (
      select status, ended_at from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = message.run_id offset 0) as run
    order by message.at desc, message.run_id desc, message.id collate "C" desc`,
    )
  const settle = statement(
    'dead.settle',
    `
    update ${schema}.messages set fate = $2::text::json ->> 'fate'::text
    where shard = $1::smallint and run_id = ($2::text::json ->> 'run'::text)::uuid and id = $2::text::json ->> 'id'::text
      and fate = 'dead'
    returning position`,
  )

  /** Where a page begins: after this letter. */
  async function start(x: Execution, after: string | undefined): Promise<object | null> {
    if (after === undefined) return {}
    const [run = '', ...rest] = after.split(' ')
    const id = rest.join(' ')
    const shard = shardOfRun(dialect, run)
    if (shard === undefined) return null
    const [row] = await x.execute(place, [shard, JSON.stringify({ run, id })])
    return row === undefined ? null : { at: Number(row['at']), afterRun: run, afterId: id }
  }

  return {
    async find(x, { name, runId }, { limit, after }) {
      if (runId !== undefined && !isRunId(runId)) return []
      const from = await start(x, after)
      if (from === null) return []
      const conditions = [
        ...(name === undefined ? [] : [`message.name = ${given('name', 'text')}`]),
        ...(runId === undefined ? [] : [`message.run_id = ${given('runId', 'uuid')}`]),
        ...(after === undefined
          ? []
          : [
              `(message.at, message.run_id, message.id collate "C")
        < (${given('at', 'bigint')}, ${given('afterRun', 'uuid')}, ${given('afterId', 'text')} collate "C")`,
            ]),
      ]
      const query = read(conditions)
      const values = JSON.stringify({ name, runId, limit, ...from })
      const own = runId === undefined ? undefined : shardOfRun(dialect, runId)
      const shards = own === undefined ? everyShard(dialect) : [own]
      const answers = await Promise.all(shards.map((shard) => x.execute(query, [shard, values])))
      return answers.flat().map(letterOf).sort(newerFirst).slice(0, limit)
    },

    async settle(x, { runId: run, id }, fate) {
      const shard = shardOfRun(dialect, run)
      if (shard === undefined) return false
      return (await x.execute(settle, [shard, JSON.stringify({ run, id, fate })])).length > 0
    },
  }
}

function letterOf(row: Row): DeadLetter {
  return { ...messageOf(row), status: row['status'] as Run['status'], endedAt: timeOf(row['ended_at']) }
}

function newerFirst(a: DeadLetter, b: DeadLetter): number {
  return b.at - a.at || compared(b.runId, a.runId) || compared(b.id, a.id)
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
