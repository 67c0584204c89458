// The rows of topics. A topic begins when a run first waits on it, or something is first sent to it; the row with the empty name
// keeps the highest position of all topics that are gone, and is never looked at. A topic gives no position again: as long as
// it has given none, it is at that one.

import type { TopicUse } from '../../../core/rules/messages/unit-of-work.ts'
import type { Connection } from '../driver/connection.ts'
import { broadcastOf, waitOf } from '../schema/rows.ts'

/** No topic has this name. */
const goneTopics = ''

const topicSql = 'select position, retain_ms from topics where shard = 0 and name = ?'

export const beginTopicSql = `
  insert into topics (shard, name, position, look_at) values (0, ?, 0, ?) on conflict (shard, name) do nothing`

const raiseGoneSql = `
  insert into topics (shard, name, position, look_at) values (0, ?, ?, null)
  on conflict (shard, name) do update set position = max(position, excluded.position)`

/** The first waits on a topic, the longest first, and whether their runs live. */
export const topicWaitsSql = `
  select wait.*, exists (
    select 1 from runs as run
    where run.shard = 0 and run.id = wait.run_id and run.ended_at is null and run.deleted_at is null) as live
  from waits as wait indexed by waits_longest
  where wait.shard = 0 and wait.kind = 'topic' and wait.target = ? and wait.delivery is not null
  order by wait.opened_at, wait.run_id limit ?`

export const oldestBroadcastSql = `
  select topic, position, id, delivery, '' as data, null as policy, at, expires_at, taken_by, delivered_to
  from broadcasts indexed by sqlite_autoindex_broadcasts_1 where shard = 0 and topic = ? order by position limit 1`

export const moveTopicSql = `
  insert into topics (shard, name, position, retain_ms, look_at) values (0, ?, ?, ?, ?)
  on conflict (shard, name) do update set position = excluded.position, retain_ms = excluded.retain_ms`

export const lookAtTopicSql = 'update topics set look_at = ? where shard = 0 and name = ?'

export function positionOf(db: Connection, topic: string): number {
  return given(db, topic) || given(db, goneTopics)
}

/** The position that it has given last; 0 if it has given none. */
function given(db: Connection, name: string): number {
  return (db.get(topicSql, [name])?.['position'] as number | undefined) ?? 0
}

export function useOf(db: Connection, topic: string, most: number): TopicUse | undefined {
  const row = db.get(topicSql, [topic])
  if (row === undefined) return undefined
  const found = db.all(topicWaitsSql, [topic, most + 1])
  const oldest = db.get(oldestBroadcastSql, [topic])
  return {
    waits: found.slice(0, most).map((one) => ({ wait: waitOf(one), isLive: one['live'] === 1 })),
    more: found.length > most,
    oldest: oldest === undefined ? undefined : broadcastOf(oldest),
    retainMs: row['retain_ms'] as number | null,
  }
}

export function deleteTopic(db: Connection, topic: string): void {
  const position = given(db, topic)
  db.run('delete from topics where shard = 0 and name = ?', [topic])
  if (position > 0) db.run(raiseGoneSql, [goneTopics, position])
}
