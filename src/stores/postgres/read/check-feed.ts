// The doctor's checks of the feed and of the projections that follow it: the invariants of `core/invariants/feed.ts`, in SQL.

import { wrongProjection } from '../../row-checks.ts'

const size = `(select sum(till - since + 1) from unnest(firsts, lasts) as span (since, till))`

/** The tables are named as the caller reads them. */
export function feedChecksOf(
  schema: string,
  { runs, journal }: { readonly runs: string; readonly journal: string },
): Readonly<Record<'feed_dense' | 'feed_complete' | 'projection_in_feed', string>> {
  const feed = `${schema}.feed`
  return {
    projection_in_feed: `
      select name as id from ${schema}.projections as p
      where shard = 0 and (${wrongProjection} or position > (select last from ${schema}.sequencer where shard = 0)
        or (part = 'rebuild' and not exists (
          select 1 from ${schema}.projections as l where l.shard = 0 and l.name = p.name and l.part = 'live')))`,

    // A row without a position is not reported yet. The sequencer goes on at the last one.
    feed_dense: `
      with sized as (
        select position, runs[1] as run_id, ${size} as size,
          pg_catalog.lag(position, 1, 0::bigint) over (order by position) as previous,
          pg_catalog.lead(position) over (order by position) as following
        from ${feed} where position is not null)
      select run_id as id from sized where position - size <> previous or (following is null
        and position <> (select last from ${schema}.sequencer where shard = 0))`,

    feed_complete: `
      with spans as (
        select feed.shard, span.run_id, span.since, span.till, feed.position, feed.number, span.place
        from ${feed} as feed cross join lateral unnest(feed.runs, feed.firsts, feed.lasts) with ordinality
          as span (run_id, since, till, place)),
      ordered as (
        select shard, run_id, since, till, pg_catalog.lag(till, 1, 0) over (
          partition by run_id order by position nulls last, number, place) as previous
        from spans)
      -- Of earlier incarnations, which may have asked for something else, it is only known that nothing comes twice or backwards.
      select r.id from ordered as o join ${runs} as r on o.shard = r.shard and o.run_id = r.id
      where o.since <= o.previous or (o.since > o.previous + 1 and o.since > r.base)
        or (not r.feed and (r.base = 1 or o.till > r.base))
      union all
      select s.run_id from (select shard, run_id, max(till) as till from spans group by shard, run_id) as s
      join ${runs} as r on s.shard = r.shard and s.run_id = r.id and r.feed
      join (select shard, run_id, max(seq) as seq from ${journal} group by shard, run_id)
        as j on j.shard = s.shard and j.run_id = s.run_id
      where s.till <> j.seq
      union all
      select r.id from ${runs} as r
      where r.feed and not exists (select 1 from spans where spans.shard = r.shard and spans.run_id = r.id)`,
  }
}
