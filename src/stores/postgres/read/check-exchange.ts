// What must be true of waits on runs and topics, of broadcasts and chores, as `core/invariants/exchange.ts` says it; and that
// no topic went on which a run waits.

import type { Dialect } from '../dialect.ts'

interface Sources {
  readonly runs: string
  readonly messages: string
  readonly waits: string
}

export function exchangeChecksOf({ schema, now }: Pick<Dialect, 'schema' | 'now'>, { runs, messages, waits }: Sources) {
  return {
    end_notified: `
      select w.run_id as id from ${waits} as w join ${runs} as r
        on r.shard = w.shard and r.id = case when w.kind = 'run' then w.target::uuid end
      where w.kind = 'run' and r.ended_at is not null and not exists (
        select 1 from ${schema}.chores as c
        where c.shard = w.shard and c.kind = 'end' and c.target = w.target
          and (c.position = 1 or c.after_run is null
            or (w.opened_at, w.run_id) >= (c.after_opened_at, c.after_run)))`,

    // A wait is not in the shard of its run: the waits are found first.
    queue_not_stuck: `
      with stuck as materialized (
        select w.run_id from ${waits} as w
        where w.kind = 'topic' and w.delivery = 'one'
          and exists (select 1 from ${schema}.broadcasts as b
            where b.shard = w.shard and b.topic = w.target and b.delivery = 'one' and b.taken_by is null
              and (b.expires_at is null or b.expires_at > ${now}))
          and not exists (
            select 1 from ${schema}.chores as c where c.shard = w.shard and c.kind = 'late' and c.target = w.target))
      select r.id from ${runs} as r
      where r.ended_at is null and r.deleted_at is null and r.id in (select run_id from stuck)`,

    late_catch_up: `
      select w.run_id as id from ${waits} as w
      where w.missed is not null and not exists (
        select 1 from ${schema}.chores as c where c.shard = w.shard and c.kind = 'late' and c.target = w.target)`,

    leftovers_settled: `
      select r.id from ${runs} as r join ${messages} as m on m.shard = r.shard and m.run_id = r.id and m.taken_by is null
      where r.ended_at is not null and not exists (
        select 1 from ${schema}.chores as c
        where c.shard = r.shard and c.kind = 'messages' and c.target = r.id::text and c.position < m.position)`,

    nothing_without_topic: `
      select w.run_id as id from ${waits} as w
      where w.kind = 'topic' and not exists (
        select 1 from ${schema}.topics as t where t.shard = w.shard and t.name = w.target)`,
  }
}
