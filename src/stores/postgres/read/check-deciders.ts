// The doctor's checks of instances of deciders: the invariants of `core/invariants/deciders.ts`, in SQL. An effect is in the
// shard of its instance.

interface Sources {
  readonly runs: string
  readonly journal: string
  readonly messages: string
}

/** The tables are named as the caller reads them; `now` is store time. */
export function deciderChecksOf(now: string, { runs, journal, messages }: Sources) {
  const hasMail = (alias: string, runId: string): string => `exists (
          select 1 from ${messages} as m
          where m.shard = ${alias}.shard and m.run_id = ${alias}.${runId} and m.taken_by is null)`
  const has = (kind: string): string => `exists (
          select 1 from ${journal} as j where j.shard = r.shard and j.run_id = r.id and j.kind = '${kind}')`
  return {
    due_is_earliest_timer: `
      with instances as materialized (
        select r.shard, r.id, coalesce(r.due, 9000000000000000::bigint) as due from ${runs} as r
        where r.status = 'waiting' and r.deleted_at is null and not ${hasMail('r', 'id')}
          and ${has('timer')} and not ${has('retried')}),
      moved as (
        select shard, run_id, seq, name, case kind
          when 'timer' then coalesce((meta::json ->> 'at'::text)::bigint, at + (meta::json ->> 'afterMs'::text)::bigint)
          when 'attempt-failed' then at + (meta::json ->> 'delayMs'::text)::bigint end as due
        from ${journal}
        where name is not null and kind in ('timer', 'timer-cancelled', 'timer-failed', 'attempt-failed')
        union all
        select shard, run_id, seq, (meta::json -> 'from'::text) ->> 'name'::text, null::bigint from ${journal}
        where kind = 'input' and (meta::json -> 'from'::text) ->> 'kind'::text = 'timer'::text),
      newest as (
        select distinct on (shard, run_id, name) shard, run_id, due from moved order by shard, run_id, name, seq desc),
      earliest as (
        select shard, run_id, coalesce(min(due), 9000000000000000::bigint) as due from newest group by shard, run_id)
      select i.id from instances as i join earliest as e on e.shard = i.shard and e.run_id = i.id
      where i.due <> e.due and (i.due > ${now} or e.due > ${now})`,

    effect_runs_follow_journal: `
      with performing as materialized (
        select shard, id, parent_id, type::text || '#'::text as type, (metadata::json ->> 'effect'::text) as name
        from ${runs} as r where parent_id is not null and metadata is not null and type like '%/%'),
      asked as materialized (
        select e.shard, e.run_id, e.seq, e.name::text as name, r.ended_at is null and r.deleted_at is null as live,
          r.type::text || '/'::text || pg_catalog.rtrim(e.name, '0123456789'::text) as type
        from ${journal} as e join ${runs} as r on r.shard = e.shard and r.id = e.run_id
        where e.kind = 'effect'),
      pending as materialized (
        select distinct on (shard, run_id) shard, run_id, type, name from asked as a
        where live and not ${hasMail('a', 'run_id')} and not exists (
          select 1 from ${journal} as o
          where o.shard = a.shard and o.run_id = a.run_id and o.seq > a.seq
            and o.kind in ('effect-succeeded', 'effect-failed') and o.name = a.name)
        order by shard, run_id, seq)
      select p.run_id as id from pending as p
      where not exists (
        select 1 from performing as c
        where c.shard = p.shard and c.parent_id = p.run_id and c.type = p.type and c.name = p.name)
      union all
      select c.id from performing as c join ${runs} as r on r.shard = c.shard and r.id = c.parent_id
      where c.name is not null and not exists (
        select 1 from asked as a
        where a.shard = c.shard and a.run_id = c.parent_id and a.type = c.type and a.name = c.name)`,
  }
}
