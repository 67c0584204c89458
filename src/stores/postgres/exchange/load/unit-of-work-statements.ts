// The statements behind `unit-of-work-loader.ts`. Each asks one shard, is bounded by its request, and looks up every row by a
// key or walks an index in its order: OFFSET and LIMIT inside a LATERAL keep it so under any statistics.

import { defaultPageLimits } from '../../../../core/model/chore.ts'
import { statement, type Dialect, type Statement } from '../../dialect.ts'
import { broadcastColumns, choreColumns, entryColumnsOf, lockRuns, waitColumns } from '../../schema/rows.ts'

/** A method whose transaction is an exchange between runs, as the plan names it. */
export type ExchangeMethod = (typeof exchangeMethods)[number]

export const exchangeMethods = ['commit', 'deliver', 'control', 'rescue', 'release', 'chore'] as const

type Texts = ReturnType<typeof loadingTexts>
export type LoadingStatements = Readonly<
  Record<Exclude<keyof Texts, 'sentNames'> | 'candidatesOfTopics' | 'candidatesOfLate' | 'candidatesOfSent', Statement>
>

/** By the method for which they are executed. */
export function loadingStatements(
  dialect: Pick<Dialect, 'schema' | 'now' | 'isSpread'>,
): Readonly<Record<ExchangeMethod, LoadingStatements>> {
  const texts = loadingTexts(dialect)
  const of = (end: ExchangeMethod): LoadingStatements => ({
    candidatesOfEnds: statement(`${end}.candidates`, texts.candidatesOfEnds),
    candidatesOfTopics: statement(`${end}.candidates`, texts.waitsOnTopics),
    candidatesOfLate: statement(`${end}.candidates`, texts.lateOnTopics),
    candidatesOfSent: statement(`${end}.candidates`, texts.sentNames),
    lockRuns: statement(`${end}.lock`, texts.lockRuns),
    // The insert locks the topics that it makes.
    makeTopics: statement(`${end}.lock-topics`, texts.makeTopics),
    lockTopics: statement(`${end}.lock-topics`, texts.lockTopics),
    waitsOnRuns: statement(`${end}.look`, texts.waitsOnRuns),
    waitsOnTopics: statement(`${end}.look`, texts.waitsOnTopics),
    lateOnTopics: statement(`${end}.look`, texts.lateOnTopics),
    unread: statement(`${end}.look`, texts.unread),
    broadcasts: statement(`${end}.look`, texts.broadcasts),
    backlogs: statement(`${end}.look`, texts.backlogs),
    lasts: statement(`${end}.look`, texts.lasts),
    messages: statement(`${end}.look`, texts.messages),
    depths: statement(`${end}.look`, texts.depths),
    sent: statement(`${end}.look`, texts.sent),
    chores: statement(`${end}.look`, texts.chores),
    broadcastsFrom: statement(`${end}.look`, texts.broadcastsFrom),
    kept: statement(`${end}.look`, texts.kept),
    crowds: statement(`${end}.look`, texts.crowds),
    topicWaits: statement(`${end}.look`, texts.topicWaits),
    liveRuns: statement(`${end}.look`, texts.liveRuns),
    oldestBroadcasts: statement(`${end}.look`, texts.oldestBroadcasts),
  })
  return Object.fromEntries(exchangeMethods.map((end) => [end, of(end)])) as Record<ExchangeMethod, LoadingStatements>
}

const ids = 'json_array_elements_text($2::text::json) as requested (id)'

function loadingTexts({ schema, now, isSpread }: Pick<Dialect, 'schema' | 'now' | 'isSpread'>) {
  const requested = 'id uuid, after bigint, messages bigint, at bigint, run uuid, waits bigint'
  const runs = `json_to_recordset($2::text::json) as requested (${requested})`
  const sentPage = `
      select entry.*, requested.bytes
      from json_to_recordset($2::text::json) as requested
        (id uuid, first integer, last integer, kind text, receiver text, bytes bigint)
      cross join lateral (
        select * from ${schema}.journal as entry
        where entry.shard = $1::smallint and entry.run_id = requested.id and entry.seq >= requested.first
          and entry.seq <= requested.last
        order by entry.seq offset 0) as entry
      where entry.kind = requested.kind and entry.meta is not null
        and coalesce(entry.meta::json ->> 'to'::text, entry.meta::json -> 'topic'::text ->> 'name'::text) = requested.receiver`
  // In order along the index of unread messages: this many, however many there are, and however many were read.
  const unread = `
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = requested.id and message.taken_by is null
        and message.position > requested.after
      order by message.position limit requested.messages`
  // In its order along the index of waits on runs: this many, however many there are. Only this statement names the delivery,
  // as that index does: a wait that is looked up by its key is not looked for in it, among the waits that are older.
  const waits = `
      select * from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'run' and wait.target = requested.id::text and wait.delivery is null
        and (wait.opened_at, wait.run_id) >= (requested.at, requested.run)
      order by wait.opened_at, wait.run_id, wait.effect limit requested.waits`
  return {
    // The next page of the waits on runs that may end, and those of the next page of their messages that would go to a topic then.
    candidatesOfEnds: `
    select wait.run_id::text as run_id, null::integer as position, null as id, null as kind, null as name, null as data,
      null as on_unread, null as delivery, null::bigint as retain_ms, null::bigint as at
    from ${runs} cross join lateral (${waits}) as wait
    union all
    select message.run_id::text, message.position, message.id, message.kind, message.name, '', message.on_unread,
      message.delivery, message.retain_ms, message.at
    from ${runs} cross join lateral (${unread}) as message where message.on_unread = 'broadcast'`,

    lockRuns: lockRuns(schema),

    // In the order of their names, as the locks. Citus would not execute an insert that reads a clock as it is: there the first
    // look at a topic comes soon.
    makeTopics: `
    insert into ${schema}.topics (shard, name, look_at)
    select $1::smallint, id, ${isSpread ? '0' : `${now} + ${defaultPageLimits.topicRestMs}`}
    from (select distinct id from ${ids} order by id) as requested on conflict do nothing`,

    // A topic that has given no position is at the highest of those that are gone. Apart from the insert, which may have
    // waited for the end of the one before: this sees what that one left.
    lockTopics: `
    select topic.name, topic.retain_ms, case when topic.position > 0 then topic.position else coalesce((
      select gone.position from ${schema}.topics as gone where gone.shard = $1::smallint and gone.name = ''), 0) end as position
    from (select distinct id from ${ids} order by id) as requested cross join lateral (
      select * from ${schema}.topics as topic
      where topic.shard = $1::smallint and topic.name = requested.id for no key update) as topic`,

    // The next page, and one more if there are more.
    waitsOnRuns: `
    select ${waitColumns('wait')} from ${runs} cross join lateral (${waits}) as wait
    order by wait.target, wait.opened_at, wait.run_id, wait.effect`,

    waitsOnTopics: `
    select ${waitColumns('wait')}
    from json_to_recordset($2::text::json) as requested (
      topic text, delivery text, most bigint, at bigint, run uuid) cross join lateral (
      select * from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = requested.topic
        and wait.delivery = requested.delivery and (wait.opened_at, wait.run_id) > (requested.at, requested.run)
      order by wait.opened_at, wait.run_id limit requested.most) as wait`,

    lateOnTopics: `
    select ${waitColumns('wait')}
    from json_to_recordset($2::text::json) as requested (topic text, most bigint, at bigint, run uuid) cross join lateral (
      select * from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.target = requested.topic and wait.missed is not null
        and (wait.opened_at, wait.run_id) > (requested.at, requested.run)
      order by wait.opened_at, wait.run_id limit requested.most) as wait`,

    // The next page, and one more if there are more. Only a broadcast needs its payload.
    unread: `
    select message.run_id, message.position, message.id, message.kind, message.name,
      case when message.on_unread = 'broadcast' then message.data else '' end as data, message.on_unread, message.delivery,
      message.retain_ms, message.at
    from ${runs} cross join lateral (${unread}) as message
    order by message.run_id, message.position`,

    chores: `
    select ${choreColumns('chore')} from json_to_recordset($2::text::json) as requested (kind text, target text)
    cross join lateral (
      select * from ${schema}.chores as chore
      where chore.shard = $1::smallint and chore.kind = requested.kind and chore.target = requested.target offset 0) as chore`,

    // The one that is being passed on, and the next; or those that a subscriber missed.
    broadcastsFrom: `
    select ${broadcastColumns('broadcast')}
    from json_to_recordset($2::text::json) as requested (topic text, position integer, most bigint) cross join lateral (
      select * from ${schema}.broadcasts as broadcast
      where broadcast.shard = $1::smallint and broadcast.topic = requested.topic and broadcast.position >= requested.position
        and broadcast.delivery = 'all'
      order by broadcast.position limit requested.most) as broadcast
    order by broadcast.position`,

    // The broadcasts that decide whether a topic is full: as far back from its last broadcast as it may keep, one for each
    // that is sent. Without their payloads, which may be long.
    kept: `
    select broadcast.topic, broadcast.position, broadcast.id, broadcast.delivery, '' as data, null as policy, broadcast.at,
      broadcast.expires_at, broadcast.taken_by, broadcast.delivered_to
    from json_to_recordset($2::text::json) as requested (topic text, most integer, sends integer) cross join lateral (
      select position from ${schema}.topics as topic
      where topic.shard = $1::smallint and topic.name = requested.topic and topic.position >= requested.most - requested.sends
      offset 0) as topic
    cross join lateral (
      select * from ${schema}.broadcasts as broadcast
      where broadcast.shard = $1::smallint and broadcast.topic = requested.topic
        and broadcast.position > topic.position - requested.most
        and broadcast.position <= topic.position - requested.most + requested.sends
      order by broadcast.position limit requested.sends) as broadcast`,

    // How many runs wait, counted up to the bound; and which of some runs are among them. Runs that end while they wait leave
    // their waits behind until a broadcast meets them: they do not count, unless they live in another shard, which is not
    // read.
    crowds: `
    with requested as materialized (
      select * from json_to_recordset($2::text::json) as requested (topic text, most bigint, runs json))
    select requested.topic, null as run_id, case when counted.waiting < requested.most then counted.waiting else (
      select count(*) from (
        select 1 from ${schema}.waits as wait left join lateral (
          select run.id from ${schema}.runs as run
          where run.shard = $1::smallint and run.id = wait.run_id
            and (run.ended_at is not null or run.deleted_at is not null) limit 1) as gone on true
        where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = requested.topic and wait.delivery is not null
          and gone.id is null
        limit requested.most) as live) end as waiting
    from requested cross join lateral (
      select count(*) as waiting from (
        select 1 from ${schema}.waits as wait
        where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = requested.topic and wait.delivery is not null
        limit requested.most) as wait) as counted
    union all
    select wait.target, wait.run_id::text, null
    from requested cross join lateral json_array_elements_text(requested.runs) as locked (id) cross join lateral (
      select target, run_id from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = requested.topic
        and wait.run_id = locked.id::uuid and wait.effect = 'notify' offset 0) as wait`,

    // Whether a topic is in use: the first waits, and the first broadcast. Neither is locked.
    topicWaits: `
    select ${waitColumns('wait')}
    from json_to_recordset($2::text::json) as requested (topic text, most bigint) cross join lateral (
      select * from ${schema}.waits as wait
      where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = requested.topic and wait.delivery is not null
      order by wait.opened_at, wait.run_id limit requested.most) as wait`,

    liveRuns: `
    select run.id from ${ids} cross join lateral (
      select run.id from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = requested.id::uuid and run.ended_at is null and run.deleted_at is null
      offset 0) as run`,

    oldestBroadcasts: `
    select broadcast.topic, broadcast.position, broadcast.id, broadcast.delivery, '' as data, null as policy, broadcast.at,
      broadcast.expires_at, broadcast.taken_by, broadcast.delivered_to
    from ${ids} cross join lateral (
      select * from ${schema}.broadcasts as broadcast
      where broadcast.shard = $1::smallint and broadcast.topic = requested.id
      order by broadcast.position limit 1) as broadcast`,

    broadcasts: `
    select ${broadcastColumns('broadcast')}
    from json_to_recordset($2::text::json) as requested (topic text, id text) cross join lateral (
      select * from ${schema}.broadcasts as broadcast
      where broadcast.shard = $1::smallint and broadcast.topic = requested.topic and broadcast.id = requested.id
        and broadcast.delivered_to >= 0
      offset 0) as broadcast`,

    // The first broadcasts that wait for any subscriber; or those that every subscriber gets that comes in time.
    backlogs: `
    with clock as materialized (select ${now} as now),
    requested as materialized (
      select * from json_to_recordset($2::text::json) as requested (topic text, delivery text, most bigint, retain bigint)),
    found as (
      select one.* from (select * from requested where delivery = 'one') as requested cross join clock cross join lateral (
        select * from ${schema}.broadcasts as broadcast
        where broadcast.shard = $1::smallint and broadcast.topic = requested.topic and broadcast.delivery = 'one'
          and broadcast.taken_by is null and (broadcast.expires_at is null or broadcast.expires_at > now)
        order by broadcast.position limit requested.most) as one
      union all
      select one.* from (select * from requested where delivery = 'all') as requested cross join clock cross join lateral (
        select * from ${schema}.broadcasts as broadcast
        where broadcast.shard = $1::smallint and broadcast.topic = requested.topic
          and (broadcast.delivery = 'all' or broadcast.taken_by is not null) and broadcast.delivery = 'all'
          and broadcast.at > now - retain and (broadcast.expires_at is null or broadcast.expires_at > now)
        offset 0) as one)
    select ${broadcastColumns('found')} from found order by found.topic, found.position`,

    // Only of runs that have ended: the last entry of a live run may be large, and is not asked for.
    lasts: `
    select run.id as run_id, ${entryColumnsOf('entry')} from ${ids} cross join lateral (
      select run.id from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = requested.id::uuid and run.ended_at is not null offset 0) as run
    cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = run.id order by entry.seq desc limit 1) as entry`,

    // A page of a journal by its key: the entries with which the run has sent to one receiver. Payloads beyond a number of
    // bytes stay behind, except for the first.
    sent: `
    select sent.seq, sent.kind, sent.name, sent.meta, case when sent.before < sent.bytes then sent.data end as data, sent.at,
      sent.transition_id
    from (
      select ${entryColumnsOf('entry')}, entry.bytes,
        coalesce(sum(octet_length(entry.data)) over (order by entry.seq rows between unbounded preceding and 1 preceding), 0)
          as before
      from (${sentPage}) as entry) as sent order by sent.seq`,

    // The same without payloads: which messages they are.
    sentNames: `
    select entry.seq, entry.kind, entry.name, entry.meta, '' as data, entry.at, entry.transition_id
    from (${sentPage}) as entry order by entry.seq`,

    depths: `
    select requested.id::text as run_id, counted.unread
    from json_to_recordset($2::text::json) as requested (id uuid, most bigint) cross join lateral (
      select count(*) as unread from (
        select 1 from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = requested.id and message.taken_by is null
        limit requested.most) as message) as counted`,

    messages: `
    select message.run_id, message.id
    from json_to_recordset($2::text::json) as requested ("runId" uuid, id text) cross join lateral (
      select run_id, id from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = requested."runId" and message.id = requested.id
      offset 0) as message`,
  }
}
