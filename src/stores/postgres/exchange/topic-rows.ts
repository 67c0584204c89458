// What a look at topics writes: those that nobody uses go, and others are looked at later. The highest position of all topics of
// a shard that are gone is in the row with the empty name, which only these transactions lock, and last of all.

import { shardFor } from '../../../core/model/run-id.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import type { PostgresUnitOfWork } from './unit-of-work.ts'

export interface TopicQueries {
  write(x: Execution, unitOfWork: Pick<PostgresUnitOfWork, 'topics'>): readonly Promise<unknown>[]
}

export function createTopicQueries({ schema, shards }: Dialect): TopicQueries {
  const deleteOne = statement(
    'chore.topics',
    `
    with gone as (
      delete from ${schema}.topics as topic where topic.shard = $1::smallint and topic.name = $2::text
      returning topic.position)
    insert into ${schema}.topics as kept (shard, name, position, look_at)
    select $1::smallint, '', position, null from gone where position > 0
    on conflict (shard, name) do update set position = greatest(kept.position, excluded.position)`,
  )
  const lookAt = statement(
    'chore.topics',
    `
    update ${schema}.topics as topic set look_at = $3::bigint where topic.shard = $1::smallint and topic.name = $2::text`,
  )
  return {
    write: (x, { topics }) =>
      Array.from(topics, ([name, { lookAt: at }]) => {
        const place = [shardFor(name, shards), name]
        return at === null ? x.execute(deleteOne, place) : x.execute(lookAt, [...place, at])
      }),
  }
}
