// The state invariants of `core/invariants`, each as one statement that finds the runs for which it does not hold, under the
// same name; and a few that only tables need. A store of a million runs is checked where it lies, all shards at once.
//
// Every join is on the shard as well, so that a database which spread its rows by it has all that it joins in one place.

import { mostOffenders } from '../../../core/invariants/check.ts'
import type { InvariantCheck } from '../../../store.ts'
import { malformedEntry, malformedRun, wrongKeyText, wrongStatusFields } from '../../row-checks.ts'
import { deciderChecksOf } from './check-deciders.ts'
import { exchangeChecksOf } from './check-exchange.ts'
import { feedChecksOf } from './check-feed.ts'
import { sentCheckOf } from './check-sent.ts'
import { damagedRows } from './damaged-rows.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import { ownSearchPath } from '../connection/search-path.ts'

export interface CheckQueries {
  /**
   * In a transaction: outside of one, the storage timeout bounds each statement. Runs that are known to have damaged rows are
   * left out, and named.
   */
  check(x: Execution, damaged?: readonly string[]): Promise<readonly InvariantCheck[]>
  /** The runs for whose rows a check fails because they hold no JSON. */
  damaged(x: Execution): Promise<readonly string[]>
}

export function createCheckQueries({ schema, now }: Dialect): CheckQueries {
  const made = (tables: Tables, adapt: (sql: string) => string): readonly (readonly [string, Statement])[] =>
    Object.entries(checksOf(schema, `(select ${now})`, tables)).map(
      ([name, sql]) => [name, statement('doctor.read', checkQuery(adapt(sql)))] as const,
    )
  const usual = made({ runs: `${schema}.runs`, journal: `${schema}.journal` }, (sql) => sql)
  const withoutDamaged = (ids: readonly string[]): typeof usual =>
    made({ runs: 'sound_runs', journal: 'sound_journal' }, (sql) => withTables(schema, ids, sql))
  const suspicious = statement(
    'doctor.read',
    `select id from ${schema}.runs where ${malformedRun} union select run_id from ${schema}.journal where ${malformedEntry}`,
  )
  // It reads everything, and may take longer than anything that others wait for; so it takes one core, and leaves them the rest.
  // Loops that begin with few rows by old statistics end with all of them: a thousand runs took 41 s that take 1 s with hashes.
  // A query that forbids a way of a plan is costly in the eyes of the planner, so each would be compiled: 40 runs took 12 s that
  // take 0.2 s without.
  // Not every family of Postgres has all of these settings.
  const safely = statement([], `select pg_catalog.set_config('search_path'::text, '${ownSearchPath}'::text, true)`)
  const unhurried = statement(
    [],
    `
    select pg_catalog.set_config(wanted.name, wanted.value, true)
    from (values ('statement_timeout', '0'), ('max_parallel_workers_per_gather', '0'), ('enable_nestloop', 'off'),
      ('jit', 'off')) as wanted (name, value)
    where wanted.name in (select name from pg_catalog.pg_settings)`,
  )
  return {
    async damaged(x) {
      await x.execute(safely, [])
      await x.execute(unhurried, [])
      return damagedRows({ schema })(x)
    },
    async check(x, damaged = []) {
      // The plans are those of the user's settings; where names are looked for is not.
      await x.execute(safely, [])
      await x.execute(unhurried, [])
      const checked: InvariantCheck[] = []
      const malformed = new Set([...damaged, ...(await x.execute(suspicious, [])).map(({ id }) => id as string)])
      for (const [name, query] of malformed.size === 0 ? usual : withoutDamaged([...malformed])) {
        const offenders = (await x.execute(query, [])).map(({ id }) => id as string)
        checked.push({ name, offenders: offenders.filter((id) => !malformed.has(id)) })
      }
      return [...checked, { name: 'rows_well_formed', offenders: [...malformed].toSorted().slice(0, mostOffenders) }]
    },
  }
}

interface Tables {
  readonly runs: string
  readonly journal: string
}

/** The statement with tables that lack these runs. Materialized, so that nothing of a damaged row is read as JSON. */
function withTables(schema: string, ids: readonly string[], sql: string): string {
  const listed = `array[${ids.map((id) => `'${id}'`).join(', ')}]::uuid[]`
  const tables =
    `with sound_runs as materialized (select * from ${schema}.runs where not (id = any (${listed}))), ` +
    `sound_journal as materialized (select * from ${schema}.journal where not (run_id = any (${listed})))`
  return /^\s*with /.test(sql) ? sql.replace(/^\s*with /, `${tables}, `) : `${tables} ${sql}`
}

/** The statement as it is asked. */
function checkQuery(sql: string): string {
  return `select distinct id from (${sql}) as found order by id limit ${mostOffenders}`
}

const text = (json: string, field: string): string => `(${json}::json ->> '${field}'::text)`
const number = (json: string, field: string): string => `${text(json, field)}::bigint`
/** The conditions of a wait, as `c.value`. */
const conditions = (alias: string): string =>
  `json_array_elements(${alias}.meta::json -> 'conditions'::text) as c (value)`

/** When a condition comes true by itself. */
const dueOf = (condition: string, registeredAt: string): string =>
  `case ${text(condition, 'kind')} when 'time' then ${number(condition, 'at')}
     when 'delay' then ${registeredAt} + ${number(condition, 'ms')} end`

const isUndoable = (alias: string): string =>
  `${alias}.kind in ('step-succeeded', 'step-failed', 'abandoned') and ${alias}.meta like '%"undo":true%'`

/** The run has something to do before it may fail or be cancelled. */
const delaysEnd = (alias: string): string =>
  `((${isUndoable(alias)}) or ${alias}.kind = 'begun' or (${alias}.kind = 'waiting' and ${alias}.meta like '%"outlasted":true%'))`

const isDropped = (alias: string): string => `exists (
      select 1 from dropped as d where d.shard = ${alias}.shard and d.run_id = ${alias}.run_id and d.seq = ${alias}.seq)`

const ends = `'succeeded', 'failed', 'cancelled'`
const statusKinds = `'succeeded', 'failed', 'cancelled', 'paused'`

/** The checks by name. A statement returns ids, any number and in any order; `now` is store time. */
function checksOf(schema: string, now: string, { runs, journal }: Tables): Readonly<Record<string, string>> {
  const messages = `${schema}.messages`
  const tags = `${schema}.tags`
  const waits = `${schema}.waits`

  /** An entry of the present incarnation together with its run. */
  const since = (alias: string): string =>
    `${journal} as ${alias} join ${runs} as r
      on r.shard = ${alias}.shard and r.id = ${alias}.run_id and ${alias}.seq >= r.base`
  /** Two rows are about the same run. */
  const ofRun = (alias: string, other: string, runId: string): string =>
    `${alias}.shard = ${other}.shard and ${alias}.run_id = ${other}.${runId}`

  /** There are few of them: they are found once. */
  const dropped = `dropped as materialized (
    select shard, run_id, ${number('meta', 'seq')} as seq from ${journal}
    where kind = 'amended' and meta like '%"dropped":true%')`

  /** Waits that nothing has ended. */
  const open = `open as (
    select w.shard, w.run_id, w.seq, w.name, w.meta, w.at, r.due
    from ${since('w')}
    where w.kind = 'waiting' and r.status = 'waiting' and r.deleted_at is null and not exists (
      select 1 from ${journal} as k
      where ${ofRun('k', 'w', 'run_id')} and k.seq >= r.base and k.kind = 'woken' and k.name = w.name
        and not ${isDropped('k')}))`

  /** Those of them that the body surely asks for: after a repair it may go another way. */
  const awaited = `awaited as (
    select * from open where meta not like '%"unawaited":true%' and seq > coalesce((
      select max(a.seq) from ${journal} as a where ${ofRun('a', 'open', 'run_id')} and a.kind = 'amended'), 0))`

  /** The step that each undo is about; 0 if there is none. */
  const undos = `undos as (
    select u.run_id, u.seq, u.name, coalesce((
      select max(s.seq) from ${journal} as s
      where ${ofRun('s', 'u', 'run_id')} and s.seq >= r.base and s.seq < u.seq and s.name = u.name
        and ${isUndoable('s')} and not ${isDropped('s')}), 0) as step
    from ${since('u')} where u.kind in ('undone', 'undo-failed'))`

  const twice = (kinds: string): string => `
    with ${dropped}
    select j.run_id as id from ${since('j')} where j.kind in (${kinds}) and not ${isDropped('j')}
    group by j.run_id, j.name having count(*) > 1`

  const without = (table: string): string => `
    select one.run_id as id from ${table} as one
    where not exists (select 1 from ${runs} as r where r.shard = one.shard and r.id = one.run_id)`

  return {
    history_gapless: `
      select run_id as id from ${journal} group by shard, run_id having min(seq) <> 1 or max(seq) <> count(*)`,

    seq_counts_entries: `
      select r.id from ${runs} as r
      left join (select shard, run_id, count(*) as entries from ${journal} group by shard, run_id) as j
        on ${ofRun('j', 'r', 'id')}
      where r.seq <> coalesce(j.entries, 0)`,

    history_single_writer: `
      select run_id as id from ${journal} where transition_id is not null
      group by shard, run_id, transition_id having count(*) > 1`,

    history_begins_with_start: `
      select r.id from ${runs} as r left join ${journal} as j on ${ofRun('j', 'r', 'id')} and j.seq = 1
      where j.kind is null or j.kind <> 'started' or j.transition_id is null
      union all
      select run_id from ${journal} where kind = 'started' and seq > 1`,

    base_is_input: `
      select r.id from ${runs} as r left join ${journal} as j on ${ofRun('j', 'r', 'id')} and j.seq = r.base
      where j.kind is null or j.kind not in ('started', 'continued', 'snapshot') or (j.kind = 'continued'
        and (${text('j.meta', 'type')} <> r.type or ${number('j.meta', 'version')} <> r.version))
      union all
      select j.run_id from ${since('j')} where j.kind in ('started', 'continued') and j.seq > r.base`,

    state_is_fold: `
      select r.id from ${runs} as r left join lateral (
        select one.kind from ${journal} as one where ${ofRun('one', 'r', 'id')} order by one.seq desc limit 1) as j on true
      where case when r.status in (${statusKinds}) then r.status else '' end
        <> case when j.kind in (${statusKinds}) then j.kind else '' end`,

    status_fields_match: `select id from ${runs} where ${wrongStatusFields}`,

    ready_is_due: `select id from ${runs} where readiness = 'ready' and due > ${now}`,

    // Ids of runs have a type of their own, which says as much.
    ids_nonempty_bounded: `
      select id from ${runs} where length(type) not between 1 and 200 or pg_catalog.strpos(type, ' '::text) > 0
        or length(key) not between 1 and 400 or length(idempotency_key) not between 1 and 400
        or length(session) not between 1 and 200
      union all
      select run_id from ${tags} where length(tag) not between 1 and 200
      union all
      select run_id from ${journal} where name = '' or length(transition_id) not between 1 and 200
      union all
      select run_id from ${messages} where name = '' or length(id) not between 1 and 700`,

    one_outcome: twice(`'step-succeeded', 'step-failed'`),

    amends_outcome: `
      select a.run_id as id from ${journal} as a
      left join ${journal} as j on ${ofRun('j', 'a', 'run_id')} and j.seq = ${number('a.meta', 'seq')}
      where a.kind = 'amended'
        and (j.kind is null or j.kind not in ('step-succeeded', 'step-failed', 'woken') or j.seq >= a.seq)`,

    cancel_wins_or_loses_once: `
      select e.run_id as id from ${journal} as e
      where e.kind in (${ends}) and e.seq < (
        select max(o.seq) from ${journal} as o where ${ofRun('o', 'e', 'run_id')}) and (e.kind <> 'failed' or coalesce((
        select n.kind from ${journal} as n
        where ${ofRun('n', 'e', 'run_id')} and n.seq > e.seq and n.kind <> 'amended'
        order by n.seq limit 1), '') <> 'retried')`,

    undo_is_fold: `
      with folded as (
        select j.shard, j.run_id, max(case when j.kind in ('failing', 'cancelling') then 2
          when ${delaysEnd('j')} then 1 else 0 end) as grade
        from ${since('j')} group by j.shard, j.run_id)
      select r.id from ${runs} as r join folded on ${ofRun('folded', 'r', 'id')}
      where grade <> case when r.undo = 'none' then 0 when r.undo = 'possible' then 1 else 2 end
        and not (r.status in ('cancelling', 'cancelled') and r.undo = 'due' and grade = 1)`,

    undo_names_step: `
      with ${dropped}, ${undos}
      select run_id as id from undos where step = 0
      union all
      select u.run_id from ${journal} as u join ${runs} as r on ${ofRun('u', 'r', 'id')}
      where u.kind in ('undone', 'undo-failed')
        and (u.seq < r.base or (r.undo <> 'due' and r.status not in ('cancelling', 'cancelled')))`,

    undo_once: `
      with ${dropped}, ${undos}
      select run_id as id from undos group by run_id, name having count(*) > 1`,

    undo_in_reverse: `
      with ${dropped}, ${undos}, ordered as (
        select run_id, step, pg_catalog.lag(step) over (partition by run_id order by seq) as previous from undos)
      select run_id as id from ordered where step > previous`,

    mailbox_dense: `
      with counted as (
        select shard, run_id, count(*) as messages, min(position) as lowest, max(position) as highest
        from ${messages} group by shard, run_id)
      select r.id from ${runs} as r left join counted as m on ${ofRun('m', 'r', 'id')}
      where coalesce(m.messages, 0) <> r.inbox or m.lowest <> 1 or m.highest <> r.inbox`,

    signal_consumed_at_most_once: `
      select run_id as id from ${messages} group by shard, run_id, id having count(*) > 1
      union all
      select m.run_id from ${messages} as m join ${runs} as r on ${ofRun('m', 'r', 'id')}
      where m.taken_by not between 1 and r.seq`,

    no_lost_wakeup: `
      with ${dropped}, ${open}, ${awaited}
      select w.run_id as id from awaited as w
      join ${messages} as m on ${ofRun('m', 'w', 'run_id')} and m.taken_by is null
      where (w.due is null or w.due > ${now}) and exists (
        select 1 from ${conditions('w')}
        where coalesce(${text('c.value', 'name')}, ${text('c.value', 'runId')}) = m.name)`,

    wake_names_cover_waits: `
      with ${dropped}, ${open}, ${awaited}
      select w.run_id as id from awaited as w
      join ${runs} as r on r.shard = w.shard and r.id = w.run_id and r.wake_names like '{"token":'::text || r.token::text || ',%'::text
      cross join lateral ${conditions('w')}
      where coalesce(${text('c.value', 'name')}, ${text('c.value', 'runId')}) is not null and not exists (
        select 1 from json_array_elements_text(r.wake_names::json -> 'names'::text) as n (value)
        where n.value = coalesce(${text('c.value', 'name')}, ${text('c.value', 'runId')}))`,

    // A wait is in the shard of its target.
    ...exchangeChecksOf({ schema, now }, { runs, messages, waits }),

    sent_delivered: sentCheckOf(schema, { runs, journal }),
    waits_for_something: `
      with ${dropped}, ${open}
      select r.id from ${runs} as r where r.status = 'waiting' and r.due is null and r.deleted_at is null
        and not exists (select 1 from open where ${ofRun('open', 'r', 'id')})
        and not exists (select 1 from ${journal} as j where ${ofRun('j', 'r', 'id')} and j.kind in ('input', 'snapshot'))`,

    timer_is_set: `
      with ${dropped}, ${open}, ${awaited}, newest as (
        select distinct on (shard, run_id) * from awaited order by shard, run_id, seq desc)
      select w.run_id as id from newest as w
      where coalesce(w.due, 9000000000000000::bigint) > (select min(${dueOf('c.value', 'w.at')}) from ${conditions('w')})`,

    timer_once: twice(`'woken'`),

    timer_never_early: `
      select k.run_id as id from ${since('k')}
      left join ${journal} as w on ${ofRun('w', 'k', 'run_id')} and w.kind = 'waiting' and w.name = k.name
        and w.seq < k.seq and w.seq >= r.base
      where k.kind = 'woken' and (
        w.seq is null or ${number('k.meta', 'seenAt')} < ${number('k.meta', 'trueAt')}
        or k.at < ${number('k.meta', 'trueAt')} or not exists (
          select 1 from ${conditions('w')}
          where ${text('c.value', 'tag')} = ${text('k.meta', 'winner')}
            and ${number('k.meta', 'trueAt')} >= coalesce(${dueOf('c.value', 'w.at')}, 0)))`,

    one_key_one_live_run: `
      select id from (
        select id, count(*) over (partition by unique_key) as sharers from ${runs}
        where unique_key is not null and ended_at is null and deleted_at is null) as keyed
      where sharers > 1`,

    idempotency_key: `
      select id from (
        select id, count(*) over (partition by started_as, idempotency_key) as sharers from ${runs}
        where idempotency_key is not null and deleted_at is null) as keyed
      where sharers > 1`,

    ...deciderChecksOf(now, { runs, journal, messages }),

    ...feedChecksOf(schema, { runs, journal }),

    // Nor is a key in the shard of its run.
    nothing_without_run: `
      with named as materialized (select run_id from ${schema}.keys union all select run_id from ${waits}),
      found as materialized (select r.id from ${runs} as r where r.id in (select run_id from named))
      ${without(journal)} union all ${without(messages)} union all ${without(tags)}
      union all
      select run_id from named where not exists (select 1 from found where found.id = named.run_id)`,

    // An idempotency key may be in another shard than its run, and so on another machine: both are read before they are compared.
    key_text_derived: `
      with held as materialized (select shard, key, type, run_id from ${schema}.keys),
      keyed as materialized (
        select shard, id, idempotency_key, started_as, case when ended_at is null then unique_key end as unique_key
        from ${runs} as r
        where deleted_at is null and (idempotency_key is not null or unique_key is not null and ended_at is null)),
      named as materialized (select r.id from ${runs} as r where r.id in (select run_id from held))
      select id from ${runs} where ${wrongKeyText}
      union all
      select id from keyed as r
      where unique_key is not null and not exists (
        select 1 from held as k
        where k.shard = r.shard and k.key = r.unique_key and k.type = ''::text and k.run_id = r.id)
      union all
      select id from keyed as r
      where idempotency_key is not null and not exists (
        select 1 from held as k where k.key = r.idempotency_key and k.type = r.started_as and k.run_id = r.id)
      union all
      select k.run_id from held as k
      where k.run_id in (select id from named) and not exists (
        select 1 from keyed as r
        where r.id = k.run_id and case when k.type = ''::text then r.unique_key = k.key
          else r.idempotency_key = k.key and r.started_as = k.type end)`,

    tags_listed: `
      select r.id from ${runs} as r cross join lateral json_array_elements_text(r.tags::json) as e (value)
      where not exists (select 1 from ${tags} as t where ${ofRun('t', 'r', 'id')} and t.tag = e.value)
      union all
      select t.run_id from ${tags} as t join ${runs} as r on ${ofRun('t', 'r', 'id')}
      where not exists (select 1 from json_array_elements_text(r.tags::json) as e (value) where e.value = t.tag)`,
  }
}
