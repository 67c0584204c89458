// How SQLite finds what it looks for. A statement that walks the whole table is right in every test and slow in every
// production, so the plans are what is tested.

import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lookSql, promoteSql, readySql } from '../../../../src/stores/sqlite/claiming.ts'
import { expiredSql, nextSql, orphansSql, overdueSql, timedOutSql } from '../../../../src/stores/sqlite/rescuing.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'

const database = new Database(':memory:')

beforeAll(async () => (await openSqliteStore({ handle: database })).migrate())
afterAll(() => database.close())

function planOf(sql: string): string[] {
  const values = Array.from(sql.matchAll(/\?/g), () => 1)
  const rows = database.prepare(`explain query plan ${sql}`).all(values) as { detail: string }[]
  return rows.map(({ detail }) => detail)
}

describe('the plan of', () => {
  it('SW-E4 a claim walks the index of the ready, in its order, and sorts nothing', () => {
    const plan = planOf(readySql)
    expect(plan).toEqual(['SEARCH runs USING INDEX runs_ready (shard=? AND type=? AND version=?)'])
  })

  it.each([
    ['a look for work', lookSql, ['runs_ready', 'runs_timed']],
    ['promoting what came due', promoteSql, ['runs_timed']],
    ['the search for orphans', orphansSql, ['runs_held']],
    ['the search for missed deadlines', overdueSql, ['runs_deadline']],
    ['the search for runs that are over time', timedOutSql, ['runs_timeout']],
    ['the search for expired runs', expiredSql, ['runs_expiry']],
    [
      'the outlook of a rescue',
      nextSql,
      ['sessions_alive', 'runs_deadline', 'runs_timeout', 'runs_expiry', 'runs_held'],
    ],
  ])('%s uses its indexes and sorts nothing', (_, sql, indexes) => {
    const plan = planOf(sql)
    for (const index of indexes) expect(plan.join('\n')).toContain(index)
    expect(plan.filter((line) => /\bSCAN (?!CONSTANT|json_each)|TEMP B-TREE/.test(line))).toEqual([])
  })
})
