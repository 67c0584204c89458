// The doctor's checks of instances of deciders: the invariants of `core/invariants/deciders.ts`, in SQL.

export const deciderChecks = {
  due_is_earliest_timer: `
    with instances as (
      select id, due from runs
      where shard = 0 and status = 'waiting' and deleted_at is null
        and id not in (select run_id from journal where shard = 0 and kind = 'retried')
        and id in (select run_id from journal where shard = 0 and kind = 'timer')
        and not exists (
          select 1 from messages as m where m.shard = 0 and m.run_id = runs.id and m.taken_by is null)),
    moved as (
      select run_id, seq, name, case kind
        when 'timer' then coalesce(cast(meta ->> 'at' as integer), at + cast(meta ->> 'afterMs' as integer))
        when 'attempt-failed' then at + cast(meta ->> 'delayMs' as integer) end as due
      from journal
      where shard = 0 and name is not null and kind in ('timer', 'timer-cancelled', 'timer-failed', 'attempt-failed')
      union all
      select run_id, seq, meta -> 'from' ->> 'name', null from journal
      where shard = 0 and kind = 'input' and meta -> 'from' ->> 'kind' = 'timer'),
    newest as (select run_id, due, row_number() over (partition by run_id, name order by seq desc) as place from moved),
    earliest as materialized (
      select run_id, coalesce(min(due), 9000000000000000) as due from newest where place = 1 group by run_id)
    select i.id from earliest as e cross join instances as i
    where i.id = e.run_id and coalesce(i.due, 9000000000000000) <> e.due
      and max(coalesce(i.due, 9000000000000000), e.due) > :now`,

  effect_runs_follow_journal: `
    with performing as materialized (
      select id, parent_id, parent_id || ' ' || type || '#' || (metadata ->> 'effect') as performs from runs
      where shard = 0 and parent_id is not null and metadata is not null and type like '%/%'),
    asked as materialized (
      select e.run_id, e.seq, e.name, e.run_id || ' ' || r.type || '/' || rtrim(e.name, '0123456789') || e.name as asks,
        r.ended_at is null and r.deleted_at is null as live
      from journal as e join runs as r on r.shard = 0 and r.id = e.run_id
      where e.shard = 0 and e.kind = 'effect'),
    pending as (
      select run_id, asks, row_number() over (partition by run_id order by seq) as place from asked as a
      where live and not exists (
          select 1 from journal as o
          where o.shard = 0 and o.run_id = a.run_id and o.seq > a.seq
            and o.kind in ('effect-succeeded', 'effect-failed') and o.name = a.name)
        and not exists (
          select 1 from messages as m where m.shard = 0 and m.run_id = a.run_id and m.taken_by is null))
    select run_id as id from pending
    where place = 1 and asks not in (select performs from performing where performs is not null)
    union all
    select id from performing
    where performs is not null and performs not in (select asks from asked)
      and parent_id in (select id from runs where shard = 0)`,
} as const
