// How Turso finds what it looks for. It uses fewer indexes by itself than SQLite does, so the statements that every worker
// sends all the time are written so that both go along one.

import { Database } from '@tursodatabase/database/compat'
import { afterAll, describe, expect, it } from 'vitest'
import { promoteSql, readySql } from '../../../../src/stores/sqlite/claiming.ts'
import { expiredSql, orphansSql, overdueSql, timedOutSql } from '../../../../src/stores/sqlite/rescuing.ts'
import { keyHolderSql } from '../../../../src/stores/sqlite/rewriting.ts'
import { migrations } from '../../../../src/stores/sqlite/schema.ts'
import { extendSql, lostSql, noticesSql } from '../../../../src/stores/sqlite/sessions.ts'
import { knownIdsSql, takenIdempotencySql, takenKeysSql } from '../../../../src/stores/sqlite/starting.ts'

const database = new Database(':memory:')
for (const migration of migrations) database.exec(migration)
afterAll(() => database.close())

function searches(sql: string): readonly string[] {
  const values = Array.from(sql.matchAll(/\?/g), () => null)
  const plan = database.prepare(`explain query plan ${sql}`).all(values) as { detail: string }[]
  return plan.map(({ detail }) => detail).filter((line) => line.startsWith('SEARCH run') || line.includes('SORTER'))
}

const byId = 'sqlite_autoindex_runs_1 (shard=? AND id=?)'

describe('on Turso', () => {
  it.each([
    ['a claim', readySql, ['runs_ready (shard=? AND type=? AND version=?)']],
    [
      'promoting what came due',
      promoteSql,
      ['runs_timed (shard=? AND type=? AND version=? AND due<=?)', 'PRIMARY KEY'],
    ],
    ['the search for ids that are known', knownIdsSql, [byId]],
    ['the search for keys that are taken', takenKeysSql, ['runs_unique (shard=? AND unique_key=?)']],
    ['the search for idempotency keys', takenIdempotencySql, ['runs_idempotency (shard=? AND idempotency_key=?']],
    ['the search for who has a key', keyHolderSql, ['runs_unique (shard=? AND unique_key=?)']],
    ['the search for claims that are lost', lostSql, [byId]],
    ['leasing and moving deadlines', extendSql, [byId, 'PRIMARY KEY']],
    [
      'what a heartbeat tells',
      noticesSql,
      [
        'runs_wished (shard=? AND session=?)',
        'runs_timeout (shard=? AND timeout_at<=?)',
        'runs_held (shard=? AND session=?)',
      ],
    ],
    ['the search for orphans', orphansSql, ['runs_held']],
    ['the search for missed deadlines', overdueSql, ['runs_deadline (shard=? AND deadline<=?)']],
    ['the search for runs that are over time', timedOutSql, ['runs_timeout (shard=? AND timeout_at<=?)']],
    ['the search for expired runs', expiredSql, ['runs_expiry (shard=? AND expires_at<=?)']],
  ])('%s goes along its index, and sorts nothing', (_, sql, expected) => {
    const found = searches(sql)
    expect(found).toHaveLength(expected.length)
    for (const [at, index] of expected.entries()) expect(found[at]).toContain(index)
  })
})
