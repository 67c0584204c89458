// How SQLite finds what it looks for. A statement that walks the whole table is right in every test and slow in every
// production, so the plans are what is tested.

import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  broadcastSql,
  forgetExpiredSql,
  forgetTakenSql,
  forgetSentToAllSql,
  newMessageSql,
  choreSql,
  broadcastsFromSql,
  unreadSql,
  broadcastAtSql,
  depthSql,
  lateSql,
  sentSql,
  liveSubscribersSql,
  oldestSql,
  subscribersSql,
  subscriptionSql,
  waitersSql,
  queueSql,
  retainedSql,
  waitsSql,
} from '../../../../src/stores/sqlite/write/unit-of-work.ts'
import {
  isolatedSql,
  keyedIsolatedSql,
  keyedLookSql,
  keyedReadySql,
  lookIsolatedSql,
  lookSql,
  promoteSql,
  readySql,
} from '../../../../src/stores/sqlite/write/claim.ts'
import { otherKeysSql } from '../../../../src/stores/sqlite/read/payloads.ts'
import { takeSql } from '../../../../src/stores/sqlite/write/commit.ts'
import { deadLetterQuery, settleSql } from '../../../../src/stores/sqlite/read/dead-letters.ts'
import { knownSql } from '../../../../src/stores/sqlite/write/deliver.ts'
import { messagePageSql, namedMessagesSql } from '../../../../src/stores/sqlite/read/read.ts'
import { expiredSql, nextSql, orphansSql, overdueSql, timedOutSql } from '../../../../src/stores/sqlite/write/rescue.ts'
import { countQuery, findQuery } from '../../../../src/stores/sqlite/read/find.ts'
import { dueChoreSql, dueTopicSql, nextTaskSql } from '../../../../src/stores/sqlite/write/chores.ts'
import { oldestBroadcastSql, topicWaitsSql } from '../../../../src/stores/sqlite/write/topics.ts'
import { keyHolderSql } from '../../../../src/stores/sqlite/write/rewrite.ts'
import {
  extendSql,
  forgetSessionsSql,
  listedSql,
  oldSessionsSql,
  unknownLeasesSql,
} from '../../../../src/stores/sqlite/write/sessions.ts'
import { knownIdsSql, takenIdempotencySql, takenKeysSql } from '../../../../src/stores/sqlite/write/start.ts'
import type { RunFilter } from '../../../../src/store.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'

const database = new Database(':memory:')

beforeAll(async () => (await openSqliteStore({ handle: database })).migrate())
afterAll(() => database.close())

function planOf(sql: string, values: readonly unknown[] = Array.from(sql.matchAll(/\?/g), () => 1)): string[] {
  const rows = database.prepare(`explain query plan ${sql}`).all([...values]) as { detail: string }[]
  return rows.map(({ detail }) => detail)
}

/** A table that is walked from end to end. Lists that were given are walked, of course. */
const walksAll = /\bSCAN (?!CONSTANT|json_each|one\b|\(subquery)/

describe('the plan of', () => {
  it('SW-E4 a claim walks the index of the ready, in its order, and sorts nothing', () => {
    const plan = planOf(readySql)
    expect(plan).toEqual(['SEARCH runs USING INDEX runs_ready (shard=? AND type=? AND version=?)'])
  })

  it('the search for keys that a worker lacks walks live runs that need one, and no others', () => {
    expect(planOf(otherKeysSql).filter((line) => line.includes('runs'))).toEqual([
      expect.stringContaining('runs_keyed'),
    ])
  })

  it.each([
    ['a look for work', lookSql, ['runs_ready', 'runs_timed']],
    ['a look for work of some keys', keyedLookSql, ['runs_ready', 'runs_timed']],
    ['a claim of some keys', keyedReadySql, ['runs_ready']],
    ['a claim of suspects of some keys', keyedIsolatedSql, ['runs_isolated']],
    ['promoting what came due', promoteSql, ['runs_timed']],
    ['a look for suspects', lookIsolatedSql, ['runs_isolated']],
    ['a claim of suspects', isolatedSql, ['runs_isolated']],
    ['the search for orphans', orphansSql, ['runs_held']],
    ['the search for missed deadlines', overdueSql, ['runs_deadline']],
    ['the search for runs that are over time', timedOutSql, ['runs_bound_timeout']],
    ['the search for expired runs', expiredSql, ['runs_bound_expiry']],
    ['the search for sessions that ended long ago', oldSessionsSql, ['sessions_ended', 'runs_held']],
    ['the end of their rows', forgetSessionsSql, ['sqlite_autoindex_sessions_1']],
    ['the look for something to do', nextTaskSql, ['chores_due', 'topics_look']],
    ['the next topic to look at', dueTopicSql, ['topics_look']],
    ['who waits on a topic', topicWaitsSql, ['waits_longest', 'sqlite_autoindex_runs_1']],
    ['the first broadcast that a topic keeps', oldestBroadcastSql, ['sqlite_autoindex_broadcasts_1']],
    [
      'the outlook of a rescue',
      nextSql,
      ['sessions_alive', 'runs_deadline', 'runs_bound_timeout', 'runs_bound_expiry', 'runs_held', 'runs_isolated'],
    ],
  ])('%s uses its indexes and sorts nothing', (_, sql, indexes) => {
    const plan = planOf(sql)
    for (const index of indexes) expect(plan.join('\n')).toContain(index)
    expect(plan.filter((line) => walksAll.test(line) || line.includes('TEMP B-TREE'))).toEqual([])
  })

  it.each([
    ['the search for keys that are taken', takenKeysSql, 'runs_unique (shard=? AND unique_key=?)'],
    [
      'the search for idempotency keys that are taken',
      takenIdempotencySql,
      'runs_idempotency (shard=? AND idempotency_key=? AND started_as=?)',
    ],
    ['the search for who has a key', keyHolderSql, 'runs_unique (shard=? AND unique_key=?)'],
    ['the search for unknown leases', unknownLeasesSql, 'runs_held (shard=? AND session=?)'],
    ['what a beat reports of runs that it lists', listedSql, 'sqlite_autoindex_runs_1 (shard=? AND id=?)'],
    ['the search for ids that are known', knownIdsSql, 'sqlite_autoindex_runs_1 (shard=? AND id=?)'],
  ])('%s looks up, and never walks', (_, sql, index) => {
    const plan = planOf(sql)
    expect(plan.filter((line) => /SEARCH runs?\b/.test(line))[0]).toContain(`INDEX ${index}`)
    expect(plan.filter((line) => walksAll.test(line))).toEqual([])
  })

  it.each([
    ['a page of a mailbox', messagePageSql, 'messages_unread (shard=? AND run_id=? AND position>?)'],
    ['what a run leaves unread', unreadSql, 'messages_unread (shard=? AND run_id=? AND position>?)'],
    ['the oldest of what is unread', oldestSql, 'messages_unread (shard=? AND run_id=?)'],
    ['how much is unread', depthSql, 'messages_unread (shard=? AND run_id=?)'],
    ['how many wait on a topic', subscribersSql, 'waits_longest (shard=? AND kind=? AND target=?)'],
    ['how many of those live', liveSubscribersSql, 'waits_longest (shard=? AND kind=? AND target=?)'],
    [
      'who has subscribed',
      subscriptionSql,
      'sqlite_autoindex_waits_1 (shard=? AND kind=? AND target=? AND run_id=? AND effect=?)',
    ],
    ['a broadcast by its place', broadcastAtSql, 'sqlite_autoindex_broadcasts_1 (shard=? AND topic=? AND position=?)'],
    ['who waits on a topic', waitersSql, 'waits_longest (shard=? AND kind=? AND target=? AND opened_at>?)'],
    ['who is late on a topic', lateSql, 'waits_late (shard=? AND target=? AND opened_at>?)'],
    ['what a run has sent', sentSql, 'sqlite_autoindex_journal_1 (shard=? AND run_id=? AND seq>? AND seq<?)'],
    ['what is passed on next', broadcastsFromSql, 'sqlite_autoindex_broadcasts_1 (shard=? AND topic=? AND position>?)'],
    ['what is left to do for a target', choreSql, 'sqlite_autoindex_chores_1 (shard=? AND kind=? AND target=?)'],
    ['the next chore', dueChoreSql, 'chores_due (shard=? AND due<?)'],
    [
      'what came under a name since the last look',
      newMessageSql,
      'messages_named (shard=? AND run_id=? AND name=? AND position>?)',
    ],
    ['the messages of a name', namedMessagesSql, 'messages_named (shard=? AND run_id=? AND name=?)'],
    ['the first of a queue', queueSql, 'broadcasts_open (shard=? AND topic=?)'],
    ['what a topic retains', retainedSql, 'sqlite_autoindex_broadcasts_1 (shard=? AND topic=?)'],
    ['a broadcast that may be known', broadcastSql, 'broadcasts_id (shard=? AND topic=? AND id=?)'],
    ['old broadcasts to all subscribers', forgetSentToAllSql, 'broadcasts_to_all (shard=? AND topic=? AND at<?)'],
    ['what was taken long ago', forgetTakenSql, 'broadcasts_taken (shard=? AND topic=? AND at<?)'],
    ['what has expired in a topic', forgetExpiredSql, 'broadcasts_expiry (shard=? AND topic=? AND expires_at'],
    ['dead letters', deadLetterQuery({}, 5, null).sql, 'messages_dead (shard=?)'],
    [
      'the next page of dead letters',
      deadLetterQuery({ name: 'a' }, 5, { at: 1, runId: 'a', id: 'b' }).sql,
      'messages_dead (shard=? AND at<?)',
    ],
    ['a message that may be known', knownSql, 'messages_id (shard=? AND run_id=? AND id=?)'],
    ['a dead letter', settleSql, 'messages_id (shard=? AND run_id=? AND id=?)'],
    ['what a transition takes', takeSql, 'messages_id (shard=? AND run_id=? AND id=?)'],
  ])('%s is found in its order, without walking or sorting', (_, sql, index) => {
    const plan = planOf(sql)
    expect(plan.join('\n')).toContain(`INDEX ${index}`)
    expect(plan.filter((line) => walksAll.test(line) || line.includes('TEMP B-TREE'))).toEqual([])
  })

  it('those who wait on a run are walked in their order, from the place where the page before ended', () => {
    const index = 'waits_on_run (shard=? AND kind=? AND target=? AND opened_at>?)'
    expect(planOf(waitsSql)).toEqual([`SEARCH waits USING INDEX ${index}`])
  })

  it('leasing and moving deadlines look up what is listed, and never walk', () => {
    const plan = planOf(extendSql)
    expect(plan.filter((line) => /SEARCH/.test(line))).toEqual([
      'SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)',
      'SEARCH run USING COVERING INDEX sqlite_autoindex_runs_1 (shard=? AND id=?)',
    ])
    expect(plan.filter((line) => walksAll.test(line))).toEqual([])
  })

  const finds: readonly (readonly [string, RunFilter])[] = [
    ['sqlite_autoindex_tags_1 (shard=? AND tag=?', { tag: 'a', statuses: ['failed'], key: 'k' }],
    ['runs_key (shard=? AND key=?', { key: 'a', types: ['a'], statuses: ['failed'] }],
    ['runs_key (shard=? AND key=?', { key: 'a', deleted: true }],
    ['runs_parent (shard=? AND parent_id=?', { parentId: 'a', version: 1 }],
    ['runs_idempotency (shard=? AND idempotency_key=?', { idempotencyKey: 'a', types: ['a'] }],
    ['sqlite_autoindex_runs_1 (shard=? AND id=?', { ids: ['a', 'b'], statuses: ['failed'] }],
    ['runs_type (shard=? AND type=?', { types: ['a'], statuses: ['failed'] }],
  ]

  it.each(finds)('SW-O3 a find and a count go along %s for %j', (index, filter) => {
    const page = findQuery(filter, { limit: 5, after: 'x' })
    const count = countQuery(filter, 5)
    for (const { sql, values } of [page, count]) {
      const plan = planOf(sql, values)
      expect(plan.find((line) => line.startsWith('SEARCH'))).toContain(index)
      expect(plan.filter((line) => walksAll.test(line))).toEqual([])
    }
  })

  it.each([1, 3])(
    'SW-O3 a find and a count of %i types walk the index of each, in its order, and no further than a page',
    (count) => {
      const types = ['a', 'b', 'c'].slice(0, count)
      for (const filter of [
        { types },
        { types, statuses: ['failed'] },
        { types, createdFrom: 1, version: 2 },
      ] as const) {
        for (const { sql, values } of [findQuery(filter, { limit: 5, after: 'x' }), countQuery(filter, 5)]) {
          const plan = planOf(sql, values)
          const searches = plan.filter((line) => line.includes('runs'))
          expect(searches).toHaveLength(count)
          for (const line of searches) expect(line).toContain('runs_type (shard=? AND type=?')
          expect(sql.split('limit ?').length - 1).toBeGreaterThanOrEqual(count)
          if (count === 1) expect(plan.join()).not.toContain('TEMP B-TREE')
        }
      }
    },
  )

  it('a page of a find is walked in its order and sorts nothing', () => {
    for (const filter of [{}, { tag: 'a' }, { key: 'a' }, { parentId: 'a' }, { statuses: ['failed'] }] as const) {
      const { sql, values } = findQuery(filter, { limit: 5, after: 'x' })
      expect(planOf(sql, values).join()).not.toContain('TEMP B-TREE')
    }
  })
})
