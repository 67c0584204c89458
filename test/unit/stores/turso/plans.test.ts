// How Turso finds what it looks for. It uses fewer indexes by itself than SQLite does, so the statements that every worker
// sends all the time are written so that both go along one.

import { Database } from '@tursodatabase/database/compat'
import { afterAll, describe, expect, it } from 'vitest'
import {
  broadcastSql,
  forgetExpiredSql,
  forgetTakenSql,
  forgetSentToAllSql,
  newMessageSql,
  queueSql,
  unreadSql,
  broadcastAtSql,
  depthSql,
  liveSubscribersSql,
  oldestSql,
  subscribersSql,
  subscriptionSql,
  waitersSql,
} from '../../../../src/stores/sqlite/write/unit-of-work.ts'
import { promoteSql, readySql } from '../../../../src/stores/sqlite/write/claim.ts'
import { takeSql } from '../../../../src/stores/sqlite/write/commit.ts'
import { dueChoreSql } from '../../../../src/stores/sqlite/write/chores.ts'
import { deadLetterQuery, settleSql } from '../../../../src/stores/sqlite/read/dead-letters.ts'
import { knownSql } from '../../../../src/stores/sqlite/write/deliver.ts'
import { messagePageSql, namedMessagesSql } from '../../../../src/stores/sqlite/read/read.ts'
import { expiredSql, orphansSql, overdueSql, timedOutSql } from '../../../../src/stores/sqlite/write/rescue.ts'
import { keyHolderSql } from '../../../../src/stores/sqlite/write/rewrite.ts'
import { migrations } from '../../../../src/stores/sqlite/schema/schema.ts'
import { extendSql, listedSql, unknownLeasesSql } from '../../../../src/stores/sqlite/write/sessions.ts'
import { knownIdsSql, takenIdempotencySql, takenKeysSql } from '../../../../src/stores/sqlite/write/start.ts'

const database = new Database(':memory:')
for (const migration of migrations) database.exec(migration)
afterAll(() => database.close())

function searches(sql: string): readonly string[] {
  const values = Array.from(sql.matchAll(/\?/g), () => null)
  const plan = database.prepare(`explain query plan ${sql}`).all(values) as { detail: string }[]
  return plan.map(({ detail }) => detail).filter((line) => /^SEARCH (?!sessions)/.test(line) || line.includes('SORTER'))
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
    ['what a beat reports of runs that it lists', listedSql, [byId]],
    ['leasing and moving deadlines', extendSql, [byId, 'PRIMARY KEY']],
    ['the search for unknown leases', unknownLeasesSql, ['runs_held (shard=? AND session=?)']],
    ['the search for orphans', orphansSql, ['runs_held']],
    ['the search for missed deadlines', overdueSql, ['runs_deadline (shard=? AND deadline<=?)']],
    ['the search for runs that are over time', timedOutSql, ['runs_bound_timeout (shard=? AND timeout_at<=?)']],
    ['a page of a mailbox', messagePageSql, ['messages_unread (shard=? AND run_id=? AND position>?)']],
    ['what a run leaves unread', unreadSql, ['messages_unread (shard=? AND run_id=? AND position>?)']],
    ['the oldest of what is unread', oldestSql, ['messages_unread (shard=? AND run_id=?)']],
    ['how much is unread', depthSql, ['messages_unread (shard=? AND run_id=?)']],
    ['how many wait on a topic', subscribersSql, ['waits_longest (shard=? AND kind=? AND target=?)']],
    ['how many of those live', liveSubscribersSql, ['waits_longest (shard=? AND kind=? AND target=?)', byId]],
    [
      'who has subscribed',
      subscriptionSql,
      ['sqlite_autoindex_waits_1 (shard=? AND kind=? AND target=? AND run_id=? AND effect=?)'],
    ],
    [
      'a broadcast by its place',
      broadcastAtSql,
      ['sqlite_autoindex_broadcasts_1 (shard=? AND topic=? AND position=?)'],
    ],
    ['who waits on a topic', waitersSql, ['waits_longest (shard=? AND kind=? AND target=? AND opened_at>=?)']],
    ['the next chore', dueChoreSql, ['chores_due (shard=? AND due<=?)']],
    [
      'what came under a name since the last look',
      newMessageSql,
      ['messages_named (shard=? AND run_id=? AND name=? AND position>?)'],
    ],
    ['the messages of a name', namedMessagesSql, ['messages_named (shard=? AND run_id=? AND name=?)']],
    ['the first of a queue', queueSql, ['broadcasts_open (shard=? AND topic=?)']],
    ['a broadcast that may be known', broadcastSql, ['broadcasts_id (shard=? AND topic=? AND id=?)']],
    [
      'old broadcasts to all subscribers',
      forgetSentToAllSql,
      ['broadcasts_to_all (shard=? AND topic=? AND at<?)', 'PRIMARY KEY'],
    ],
    ['what was taken long ago', forgetTakenSql, ['broadcasts_taken (shard=? AND topic=? AND at<?)', 'PRIMARY KEY']],
    [
      'what has expired in a topic',
      forgetExpiredSql,
      ['broadcasts_expiry (shard=? AND topic=? AND expires_at<=?)', 'PRIMARY KEY'],
    ],
    ['dead letters', deadLetterQuery({}, 5, null).sql, ['messages_dead (shard=?)', byId]],
    ['a message that may be known', knownSql, ['messages_id (shard=? AND run_id=? AND id=?)']],
    ['a dead letter', settleSql, ['messages_id (shard=? AND run_id=? AND id=?)']],
    ['what a transition takes', takeSql, ['messages_id (shard=? AND run_id=? AND id=?)', 'PRIMARY KEY']],
    ['the search for expired runs', expiredSql, ['runs_bound_expiry (shard=? AND expires_at<=?)']],
  ])('%s goes along its index, and sorts nothing', (_, sql, expected) => {
    const found = searches(sql)
    expect(found).toHaveLength(expected.length)
    for (const [at, index] of expected.entries()) expect(found[at]).toContain(index)
  })
})
