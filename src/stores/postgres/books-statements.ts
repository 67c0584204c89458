// The statements behind `books-loading.ts`. Each asks one shard, is bounded by what it is asked for, and looks up every one
// by a key or walks an index in its order: OFFSET and LIMIT inside a LATERAL keep it so, whatever the statistics say.

import { statement, type Dialect, type Statement } from './dialect.ts'
import { broadcastColumns, entryColumnsOf, lockRuns, messageColumns, waitColumns } from './rows.ts'

/** A method whose transaction exchanges something between runs, as the plan names it. */
export type Ender = (typeof enders)[number]

export const enders = ['commit', 'deliver', 'steer', 'rescue', 'release'] as const

type Texts = ReturnType<typeof loadingTexts>
export type LoadingStatements = Readonly<Record<keyof Texts | 'candidatesOfTopics', Statement>>

/** By the method for which they are executed. */
export function loadingStatements(
  dialect: Pick<Dialect, 'schema' | 'now'>,
): Readonly<Record<Ender, LoadingStatements>> {
  const texts = loadingTexts(dialect)
  const of = (end: Ender): LoadingStatements => ({
    candidatesOfEnds: statement(`${end}.candidates`, texts.candidatesOfEnds),
    candidatesOfTopics: statement(`${end}.candidates`, texts.waitsOnTopics),
    lockRuns: statement(`${end}.lock`, texts.lockRuns),
    // What is made here is locked with that.
    makeTopics: statement(`${end}.lock-topics`, texts.makeTopics),
    lockTopics: statement(`${end}.lock-topics`, texts.lockTopics),
    waitsOnRuns: statement(`${end}.look`, texts.waitsOnRuns),
    waitsOnTopics: statement(`${end}.look`, texts.waitsOnTopics),
    unread: statement(`${end}.look`, texts.unread),
    broadcasts: statement(`${end}.look`, texts.broadcasts),
    backlogs: statement(`${end}.look`, texts.backlogs),
    lasts: statement(`${end}.look`, texts.lasts),
    messages: statement(`${end}.look`, texts.messages),
  })
  return Object.fromEntries(enders.map((end) => [end, of(end)])) as Record<Ender, LoadingStatements>
}

const ids = 'json_array_elements_text($2::text::json) as asked (id)'

/** What of a message's policy says that it goes on to a topic. */
const isBroadcast = `message.policy like '%"onTargetTerminated":"broadcast"%'`

/** How much of a mailbox is settled one by one when its run ends; what goes on to a topic is not counted. */
export const unreadAtOnce = 100

function loadingTexts({ schema, now }: Pick<Dialect, 'schema' | 'now'>) {
  const isUnread = 'message.shard = $1::smallint and message.run_id = asked.id::uuid and message.taken_by is null'
  return {
    // Who waits on runs that may end, and what they have not read that would go to a topic then.
    candidatesOfEnds: `
    select wait.run_id::text as run_id, null::integer as position, null as id, null as kind, null as name, null as data,
      null as policy, null::bigint as at
    from ${ids} cross join lateral (
      select run_id from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'run' and wait.target = asked.id offset 0) as wait
    union all
    select message.run_id::text, message.position, message.id, message.kind, message.name, '', message.policy, message.at
    from ${ids} cross join lateral (
      select * from ${schema}.messages as message
      where ${isUnread} and ${isBroadcast} offset 0) as message`,

    lockRuns: lockRuns(schema),

    // In the order of their names, as the locks.
    makeTopics: `
    insert into ${schema}.topics (shard, name)
    select $1::smallint, id from (select distinct id from ${ids} order by id) as asked on conflict do nothing`,

    lockTopics: `
    select topic.name, topic.position from (select distinct id from ${ids} order by id) as asked cross join lateral (
      select * from ${schema}.topics as topic
      where topic.shard = $1::smallint and topic.name = asked.id for no key update) as topic`,

    waitsOnRuns: `
    select ${waitColumns('wait')} from ${ids} cross join lateral (
      select * from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'run' and wait.target = asked.id
      order by wait.opened_at, wait.run_id offset 0) as wait`,

    waitsOnTopics: `
    select ${waitColumns('wait')}
    from json_to_recordset($2::text::json) as asked (topic text, delivery text, most bigint) cross join lateral (
      select * from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = asked.topic
        and wait.delivery = asked.delivery
      order by wait.opened_at, wait.run_id limit asked.most) as wait`,

    // All that goes on to a topic. Of the rest the first, and one more if there are more; what they say is not needed.
    unread: `
    select ${messageColumns('message')} from ${ids} cross join lateral (
      select * from (
        select run_id, position, id, kind, name, data, policy, at from ${schema}.messages as message
        where ${isUnread} and ${isBroadcast} order by message.position offset 0) as passed_on
      union all
      select * from (
        select run_id, position, id, kind, name, '', policy, at from ${schema}.messages as message
        where ${isUnread} and (${isBroadcast}) is not true order by message.position
        limit ${unreadAtOnce + 1}) as rest) as message
    order by message.position`,

    broadcasts: `
    select ${broadcastColumns('broadcast')}
    from json_to_recordset($2::text::json) as asked (topic text, id text) cross join lateral (
      select * from ${schema}.broadcasts as broadcast
      where broadcast.shard = $1::smallint and broadcast.topic = asked.topic and broadcast.id = asked.id
        and broadcast.told >= 0
      offset 0) as broadcast`,

    // The first of what waits for anybody; or what everybody gets who comes in time.
    backlogs: `
    with clock as materialized (select ${now} as now),
    asked as materialized (
      select * from json_to_recordset($2::text::json) as asked (topic text, delivery text, most bigint, retain numeric)),
    found as (
      select one.* from (select * from asked where delivery = 'queue') as asked cross join clock cross join lateral (
        select * from ${schema}.broadcasts as broadcast
        where broadcast.shard = $1::smallint and broadcast.topic = asked.topic and broadcast.delivery = 'queue'
          and broadcast.taken_by is null and (broadcast.expires_at is null or broadcast.expires_at > now)
        order by broadcast.position limit asked.most) as one
      union all
      select one.* from (select * from asked where delivery = 'topic') as asked cross join clock cross join lateral (
        select * from ${schema}.broadcasts as broadcast
        where broadcast.shard = $1::smallint and broadcast.topic = asked.topic
          and (broadcast.delivery = 'topic' or broadcast.taken_by is not null) and broadcast.delivery = 'topic'
          and broadcast.at > (now - retain)::bigint and (broadcast.expires_at is null or broadcast.expires_at > now)
        offset 0) as one)
    select ${broadcastColumns('found')} from found order by found.topic, found.position`,

    // Only of those that are over: what a live run did last may be large, and nobody asks.
    lasts: `
    select run.id as run_id, ${entryColumnsOf('entry')} from ${ids} cross join lateral (
      select run.id from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = asked.id::uuid and run.ended_at is not null offset 0) as run
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = run.id order by entry.seq desc limit 1) as entry`,

    messages: `
    select message.run_id, message.id
    from json_to_recordset($2::text::json) as asked ("runId" uuid, id text) cross join lateral (
      select run_id, id from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = asked."runId" and message.id = asked.id
      offset 0) as message`,
  }
}
