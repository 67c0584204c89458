// The state invariants of `core/invariants`, each as one statement that finds the runs for which it does not hold, under the
// same name; and a few that only tables need. A store of a million runs is checked where it lies.
//
// Everything is plain SQL but for JSON, whose three forms stand together below. Statements walk the journal once; where one
// looks at a single run, it goes along the primary key.

import { mostOffenders } from '../../../core/invariants/check.ts'
import { sentPrefix } from '../../../core/model/message.ts'
import type { Clock } from '../../../core/runtime/ports.ts'
import type { InvariantCheck } from '../../../store.ts'
import { malformedEntry, malformedRun, wrongKeyText, wrongProjection, wrongStatusFields } from '../../row-checks.ts'
import type { Connection } from '../driver/connection.ts'
import { nowExpression } from '../driver/settings.ts'
import { deciderChecks } from './check-deciders.ts'

const text = (json: string, field: string | number): string => `(${json} ->> ${quoted(field)})`
const number = (json: string, field: string | number): string => `cast(${text(json, field)} as integer)`
/** The members of a list, as `alias.value`; `alias.key` counts them. */
const members = (json: string, alias: string): string => `json_each(${json}) as ${alias}`

function quoted(field: string | number): string {
  return typeof field === 'number' ? String(field) : `'${field}'`
}

/** A run together with the entries of its present incarnation. */
const since = (alias: string): string =>
  `journal as ${alias} join runs as r on r.shard = 0 and r.id = ${alias}.run_id and ${alias}.seq >= r.base`

const lastSeq = (runId: string): string => `(select max(seq) from journal where shard = 0 and run_id = ${runId})`

const isUndoable = (alias: string): string =>
  `${alias}.kind in ('step-succeeded', 'step-failed', 'abandoned') and ${alias}.meta like '%"undo":true%'`

/** The run has something to do before it may fail or be cancelled. */
const delaysEnd = (alias: string): string =>
  `((${isUndoable(alias)}) or ${alias}.kind = 'begun' or (${alias}.kind = 'waiting' and ${alias}.meta like '%"outlasted":true%'))`

/** There are few of them: they are found once. */
const dropped = `dropped as materialized (
  select run_id, ${number('meta', 'seq')} as seq from journal
  where shard = 0 and kind = 'amended' and meta like '%"dropped":true%')`

const isDropped = (alias: string): string =>
  `exists (select 1 from dropped as d where d.run_id = ${alias}.run_id and d.seq = ${alias}.seq)`

/** Waits that nothing has ended. */
const open = `open as (
  select w.run_id, w.seq, w.name, w.meta, w.at, r.due, r.deleted_at
  from ${since('w')}
  where w.shard = 0 and w.kind = 'waiting' and r.status = 'waiting' and r.deleted_at is null and not exists (
    select 1 from journal as k
    where k.shard = 0 and k.run_id = w.run_id and k.seq >= r.base and k.kind = 'woken' and k.name = w.name
      and not ${isDropped('k')}))`

/** Those of them that the body surely awaits: after a repair it may go another way. */
const awaited = `awaited as (
  select * from open where meta not like '%"unawaited":true%' and seq > coalesce((
    select max(a.seq) from journal as a where a.shard = 0 and a.run_id = open.run_id and a.kind = 'amended'), 0))`

/** The step that each undo is about; 0 if there is none. */
const undos = `undos as (
  select u.run_id, u.seq, u.name, coalesce((
    select max(s.seq) from journal as s
    where s.shard = 0 and s.run_id = u.run_id and s.seq >= r.base and s.seq < u.seq and s.name = u.name
      and ${isUndoable('s')} and not ${isDropped('s')}), 0) as step
  from ${since('u')}
  where u.shard = 0 and u.kind in ('undone', 'undo-failed'))`

/** When a condition comes true by itself. */
const dueOf = (condition: string, registeredAt: string): string =>
  `case ${text(condition, 'kind')} when 'time' then ${number(condition, 'at')}
     when 'delay' then ${registeredAt} + ${number(condition, 'ms')} end`

const twice = (kinds: string): string => `
  with ${dropped}
  select j.run_id as id from ${since('j')}
  where j.shard = 0 and j.kind in (${kinds}) and not ${isDropped('j')}
  group by j.run_id, j.name having count(*) > 1`

const ends = `'succeeded', 'failed', 'cancelled'`
const statusKinds = `'succeeded', 'failed', 'cancelled', 'paused'`

/** The checks by name. A statement returns ids, any number and in any order; `:now` is store time. */
export const checks: Readonly<Record<string, string>> = {
  history_gapless: `
    select run_id as id from journal where shard = 0
    group by run_id having min(seq) <> 1 or max(seq) <> count(*)`,

  seq_counts_entries: `
    select id from runs
    where shard = 0 and seq <> (select count(*) from journal where journal.shard = 0 and journal.run_id = runs.id)`,

  history_single_writer: `
    select run_id as id from journal where shard = 0 and transition_id is not null
    group by run_id, transition_id having count(*) > 1`,

  history_begins_with_start: `
    select r.id from runs as r left join journal as j on j.shard = 0 and j.run_id = r.id and j.seq = 1
    where r.shard = 0 and (j.kind is null or j.kind <> 'started' or j.transition_id is null)
    union all
    select run_id from journal where shard = 0 and kind = 'started' and seq > 1`,

  base_is_input: `
    select r.id from runs as r left join journal as j on j.shard = 0 and j.run_id = r.id and j.seq = r.base
    where r.shard = 0 and (j.kind is null or j.kind not in ('started', 'continued', 'snapshot') or (j.kind = 'continued'
      and (${text('j.meta', 'type')} <> r.type or ${number('j.meta', 'version')} <> r.version)))
    union all
    select j.run_id from ${since('j')}
    where j.shard = 0 and j.kind in ('started', 'continued') and j.seq > r.base`,

  state_is_fold: `
    select r.id from runs as r
    left join journal as j on j.shard = 0 and j.run_id = r.id and j.seq = ${lastSeq('r.id')}
    where r.shard = 0 and case when r.status in (${statusKinds}) then r.status else '' end
      <> case when j.kind in (${statusKinds}) then j.kind else '' end`,

  status_fields_match: `select id from runs where shard = 0 and (${wrongStatusFields})`,

  ready_is_due: `select id from runs where shard = 0 and readiness = 'ready' and due > :now`,

  ids_nonempty_bounded: `
    select id from runs where shard = 0 and (
      length(id) not between 1 and 200 or length(type) not between 1 and 200 or type like '% %'
      or length(key) not between 1 and 400 or length(idempotency_key) not between 1 and 400
      or length(parent_id) not between 1 and 200 or length(session) not between 1 and 200)
    union all
    select run_id from tags where shard = 0 and length(tag) not between 1 and 200
    union all
    select run_id from journal where shard = 0 and (name = '' or length(transition_id) not between 1 and 200)
    union all
    select run_id from messages where shard = 0 and (name = '' or length(id) not between 1 and 700)`,

  one_outcome: twice(`'step-succeeded', 'step-failed'`),

  amends_outcome: `
    select a.run_id as id from journal as a
    left join journal as j on j.shard = 0 and j.run_id = a.run_id and j.seq = ${number('a.meta', 'seq')}
    where a.shard = 0 and a.kind = 'amended'
      and (j.kind is null or j.kind not in ('step-succeeded', 'step-failed', 'woken') or j.seq >= a.seq)`,

  cancel_wins_or_loses_once: `
    select e.run_id as id from journal as e
    where e.shard = 0 and e.kind in (${ends}) and e.seq < ${lastSeq('e.run_id')} and (e.kind <> 'failed' or coalesce((
      select n.kind from journal as n
      where n.shard = 0 and n.run_id = e.run_id and n.seq > e.seq and n.kind <> 'amended'
      order by n.seq limit 1), '') <> 'retried')`,

  undo_is_fold: `
    with folded as (
      select j.run_id, max(case when j.kind in ('failing', 'cancelling') then 2
        when ${delaysEnd('j')} then 1 else 0 end) as grade
      from ${since('j')} where j.shard = 0 group by j.run_id)
    select r.id from runs as r join folded on folded.run_id = r.id
    where r.shard = 0 and grade <> case r.undo when 'none' then 0 when 'possible' then 1 else 2 end
      and not (r.status in ('cancelling', 'cancelled') and r.undo = 'due' and grade = 1)`,

  undo_names_step: `
    with ${dropped}, ${undos}
    select run_id as id from undos where step = 0
    union all
    select u.run_id from journal as u join runs as r on r.shard = 0 and r.id = u.run_id
    where u.shard = 0 and u.kind in ('undone', 'undo-failed')
      and (u.seq < r.base or (r.undo <> 'due' and r.status not in ('cancelling', 'cancelled')))`,

  undo_once: `
    with ${dropped}, ${undos}
    select run_id as id from undos group by run_id, name having count(*) > 1`,

  undo_in_reverse: `
    with ${dropped}, ${undos}, ordered as (
      select run_id, step, min(step) over (partition by run_id order by seq) as lowest from undos)
    select run_id as id from ordered where step > lowest`,

  mailbox_dense: `
    with counted as (
      select run_id, count(*) as messages, min(position) as lowest, max(position) as highest
      from messages where shard = 0 group by run_id)
    select r.id from runs as r left join counted as m on m.run_id = r.id
    where r.shard = 0 and (coalesce(m.messages, 0) <> r.inbox or m.lowest <> 1 or m.highest <> r.inbox)`,

  signal_consumed_at_most_once: `
    select run_id as id from messages where shard = 0 group by run_id, id having count(*) > 1
    union all
    select m.run_id from messages as m join runs as r on r.shard = 0 and r.id = m.run_id
    where m.shard = 0 and m.taken_by not between 1 and r.seq`,

  no_lost_wakeup: `
    with ${dropped}, ${open}, ${awaited}
    select w.run_id as id from awaited as w
    join messages as m on m.shard = 0 and m.run_id = w.run_id and m.taken_by is null
    where (w.due is null or w.due > :now) and exists (
      select 1 from ${members(`w.meta -> 'conditions'`, 'c')}
      where coalesce(${text('c.value', 'name')}, ${text('c.value', 'runId')}) = m.name)`,

  wake_names_cover_waits: `
    with ${dropped}, ${open}, ${awaited}
    select w.run_id as id from awaited as w
    join runs as r on r.shard = 0 and r.id = w.run_id and r.wake_names like '{"token":' || r.token || ',%'
    join ${members(`w.meta -> 'conditions'`, 'c')}
    where coalesce(${text('c.value', 'name')}, ${text('c.value', 'runId')}) is not null and not exists (
      select 1 from ${members(`r.wake_names -> 'names'`, 'n')}
      where n.value = coalesce(${text('c.value', 'name')}, ${text('c.value', 'runId')}))`,

  end_notified: `
    select w.run_id as id from waits as w join runs as r on r.shard = 0 and r.id = w.target
    where w.shard = 0 and w.kind = 'run' and r.ended_at is not null and not exists (
      select 1 from chores as c
      where c.shard = 0 and c.kind = 'end' and c.target = w.target
        and (c.position = 1 or c.after_run is null
          or (w.opened_at, w.run_id) >= (c.after_opened_at, c.after_run)))`,

  queue_not_stuck: `
    select w.run_id as id from waits as w join runs as r on r.shard = 0 and r.id = w.run_id
    where w.shard = 0 and w.kind = 'topic' and w.delivery = 'one' and r.ended_at is null and r.deleted_at is null
      and exists (select 1 from broadcasts as b
        where b.shard = 0 and b.topic = w.target and b.delivery = 'one' and b.taken_by is null
          and (b.expires_at is null or b.expires_at > :now))
      and not exists (select 1 from chores as c where c.shard = 0 and c.kind = 'late' and c.target = w.target)`,

  late_catch_up: `
    select w.run_id as id from waits as w
    where w.shard = 0 and w.missed is not null and not exists (
      select 1 from chores as c where c.shard = 0 and c.kind = 'late' and c.target = w.target)`,

  leftovers_settled: `
    select r.id from runs as r join messages as m on m.shard = 0 and m.run_id = r.id and m.taken_by is null
    where r.shard = 0 and r.ended_at is not null and not exists (
      select 1 from chores as c
      where c.shard = 0 and c.kind = 'messages' and c.target = r.id and c.position < m.position)`,

  sent_delivered: `
    select s.run_id as id from journal as s join runs as r on r.shard = 0 and r.id = ${text('s.meta', 'to')}
    where s.shard = 0 and s.kind = 'signal-sent' and s.meta is not null and r.ended_at is null and r.deleted_at is null
      and r.created_at < s.at
      and not exists (select 1 from journal as e where e.shard = 0 and e.run_id = r.id and e.kind = 'retried')
      and not exists (
        select 1 from messages as m
        where m.shard = 0 and m.run_id = r.id and m.id = '${sentPrefix}' || s.run_id || ':' || s.seq)
      and not exists (
        select 1 from chores as c
        where c.shard = 0 and c.kind = 'send' and c.target = s.run_id || ' ' || r.id and c.position <= s.seq)`,

  waits_for_something: `
    with ${dropped}, ${open}
    select id from runs
    where shard = 0 and status = 'waiting' and due is null and deleted_at is null
      and not exists (select 1 from open where open.run_id = runs.id)
      and not exists (select 1 from journal as j
        where j.shard = 0 and j.run_id = runs.id and j.kind in ('input', 'snapshot'))`,

  timer_is_set: `
    with ${dropped}, ${open}, ${awaited}, last as (select run_id, max(seq) as seq from awaited group by run_id)
    select w.run_id as id from last join awaited as w on w.run_id = last.run_id and w.seq = last.seq
    where coalesce(w.due, 9e15) > (
      select min(${dueOf('c.value', 'w.at')}) from ${members(`w.meta -> 'conditions'`, 'c')})`,

  timer_once: twice(`'woken'`),

  timer_never_early: `
    select k.run_id as id from ${since('k')}
    left join journal as w on w.shard = 0 and w.run_id = k.run_id and w.kind = 'waiting' and w.name = k.name
      and w.seq < k.seq and w.seq >= r.base
    where k.shard = 0 and k.kind = 'woken' and (
      w.seq is null or ${number('k.meta', 'seenAt')} < ${number('k.meta', 'trueAt')}
      or k.at < ${number('k.meta', 'trueAt')} or not exists (
        select 1 from ${members(`w.meta -> 'conditions'`, 'c')}
        where ${text('c.value', 'tag')} = ${text('k.meta', 'winner')}
          and ${number('k.meta', 'trueAt')} >= coalesce(${dueOf('c.value', 'w.at')}, 0)))`,

  ...deciderChecks,

  one_key_one_live_run: `
    select id from runs where shard = 0 and ended_at is null and deleted_at is null and unique_key in (
      select unique_key from runs
      where shard = 0 and unique_key is not null and ended_at is null and deleted_at is null
      group by unique_key having count(*) > 1)`,

  idempotency_key: `
    select r.id from runs as r
    join (
      select started_as, idempotency_key from runs
      where shard = 0 and idempotency_key is not null and deleted_at is null
      group by started_as, idempotency_key having count(*) > 1
    ) as shared on shared.started_as = r.started_as and shared.idempotency_key = r.idempotency_key
    where r.shard = 0 and r.deleted_at is null`,

  feed_dense: `
    select ${text('entries -> 0', 0)} as id from feed
    where shard = 0 and position <> coalesce((
      select max(earlier.position) from feed as earlier where earlier.shard = 0 and earlier.position < feed.position), 0
    ) + (select sum(${number('e.value', 2)} - ${number('e.value', 1)} + 1) from ${members('feed.entries', 'e')})`,

  feed_complete: `
    with ranges as (
      select ${text('e.value', 0)} as run_id, ${number('e.value', 1)} as first, ${number('e.value', 2)} as last,
        feed.position, e.key
      from feed join ${members('feed.entries', 'e')} on feed.shard = 0),
    -- Of earlier incarnations, which may have asked for something else, it is only known that nothing comes twice or backwards.
    counted as (
      select f.run_id, f.last, r.base, r.feed,
        sum(f.last - f.first + 1) over (partition by f.run_id order by f.position, f.key) as entries,
        max(f.last) over (partition by f.run_id order by f.position, f.key) as furthest,
        sum(case when f.last < r.base then 0 else f.last - max(f.first, r.base) + 1 end)
          over (partition by f.run_id order by f.position, f.key) as own
      from ranges as f cross join runs as r where r.shard = 0 and r.id = f.run_id)
    select run_id as id from counted
    where last < furthest or last < entries or (last >= base and last <> base - 1 + own)
      or (feed = 0 and (base = 1 or last > base))
    union all
    select r.id from (select run_id, max(last) as last from ranges group by run_id) as f cross join runs as r
    where r.shard = 0 and r.id = f.run_id and r.feed = 1 and f.last <> ${lastSeq('r.id')}
    union all
    select id from runs where shard = 0 and feed = 1 and id not in (select run_id from ranges)`,

  nothing_without_run: `
    select run_id as id from journal
    where shard = 0 and seq = 1 and not exists (select 1 from runs where runs.shard = 0 and runs.id = journal.run_id)
    union all
    select run_id from messages
    where shard = 0 and not exists (select 1 from runs where runs.shard = 0 and runs.id = messages.run_id)
    union all
    select run_id from tags
    where shard = 0 and not exists (select 1 from runs where runs.shard = 0 and runs.id = tags.run_id)
    union all
    select run_id from waits
    where shard = 0 and not exists (select 1 from runs where runs.shard = 0 and runs.id = waits.run_id)`,

  nothing_without_topic: `
    select run_id as id from waits
    where shard = 0 and kind = 'topic' and not exists (
      select 1 from topics where topics.shard = 0 and topics.name = waits.target)`,

  projection_in_feed: `
    select name as id from projections as p
    where shard = 0 and (${wrongProjection} or position > coalesce((select max(position) from feed where shard = 0), 0)
      or (part = 'rebuild' and not exists (
        select 1 from projections as l where l.shard = 0 and l.name = p.name and l.part = 'live')))`,

  key_text_derived: `select id from runs where shard = 0 and ${wrongKeyText}`,

  tags_listed: `
    select r.id from runs as r join ${members('r.tags', 'e')} on r.shard = 0 and r.tags is not null
    left join tags as t on t.shard = 0 and t.tag = e.value and t.run_id = r.id
    where t.tag is null
    union all
    select t.run_id from tags as t join runs as r on r.shard = 0 and r.id = t.run_id
    where t.shard = 0 and not exists (select 1 from ${members('r.tags', 'e')} where e.value = t.tag)`,

  rows_well_formed: `
    select id from runs where shard = 0 and (${malformedRun} or not json_valid(coalesce(tags, '[]'))
      or not json_valid(coalesce(metadata, '{}')) or not json_valid(coalesce(control_request, '{}'))
      or not json_valid(coalesce(wake_names, '{}')))
    union all
    select run_id from journal where shard = 0 and (${malformedEntry} or not json_valid(coalesce(meta, '{}')))`,
}

/** The statement without runs of which rows hold no JSON: it would fail at them. Turso knows no other way to leave them out. */
function without(ids: readonly string[], sql: string): string {
  const listed = ids.map((id) => `'${id.replaceAll("'", "''")}'`).join(', ')
  return sql.replaceAll(/\b(from|join) (runs|journal)\b( as\b)?/g, (_, word: string, table: string, as?: string) => {
    const sound = `(select * from ${table} where ${table === 'runs' ? 'id' : 'run_id'} not in (${listed}))`
    return `${word} ${sound} as${as === undefined ? ` ${table}` : ''}`
  })
}

/** The statement as it is asked. */
export function checkQuery(sql: string): string {
  return `select distinct id from (${sql}) as found order by id limit ${mostOffenders}`
}

/**
 * Each statement sees the state that is committed when it begins, which may be long after the first of them. So each has its
 * own time, read by itself after it has begun: by an earlier time, runs that became due meanwhile would not be due yet. A
 * clock that a test owns is read once.
 */
export function checkTables(db: Connection, clock: Pick<Clock, 'now'> | undefined): readonly InvariantCheck[] {
  const [requested, given] = clock === undefined ? [nowExpression, []] : ['?', [clock.now()]]
  const { rows_well_formed: malformed = '', ...others } = checks
  const damaged = new Set(db.all(malformed, []).map(({ id }) => id as string))
  const checked = Object.entries(others).map(([name, sql]) => {
    const readable = damaged.size === 0 ? sql : without([...damaged], sql)
    const times = readable.split(':now').length - 1
    const values = Array.from({ length: times }, () => given).flat()
    const found = db.all(checkQuery(readable.replaceAll(':now', requested)), values).map(({ id }) => id as string)
    return { name, offenders: found.filter((id) => !damaged.has(id)) }
  })
  return [...checked, { name: 'rows_well_formed', offenders: [...damaged].toSorted().slice(0, mostOffenders) }]
}
