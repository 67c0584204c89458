// The doctor's check of what runs send: the invariant `sent_delivered` of `core/invariants/exchange.ts`, in SQL. A receiver is
// not in the shard of its sender, so senders, receivers and messages are found first, each by themselves.

import { sentPrefix } from '../../../core/model/message.ts'

const idOf = (sent: string): string => `'${sentPrefix}'::text || ${sent}.run_id::text || ':'::text || ${sent}.seq::text`

/** The tables are named as the caller reads them. */
export function sentCheckOf(
  schema: string,
  { runs, journal }: { readonly runs: string; readonly journal: string },
): string {
  return `
      with sending as materialized (
        select s.shard, s.run_id, s.seq, s.at, (s.meta::json ->> 'to'::text) as receiver
        from ${journal} as s where s.kind = 'signal-sent' and s.meta is not null),
      sent as materialized (
        select s.run_id, s.seq, s.at, s.receiver from sending as s where not exists (
          select 1 from ${schema}.chores as c
          where c.shard = s.shard and c.kind = 'send' and c.target = s.run_id::text || ' '::text || s.receiver::text
            and c.position <= s.seq)),
      live as materialized (
        select r.id, r.created_at from ${runs} as r
        where r.ended_at is null and r.deleted_at is null and r.id::text in (select receiver from sent)
          and not exists (
            select 1 from ${journal} as e where e.shard = r.shard and e.run_id = r.id and e.kind = 'retried')),
      arrived as materialized (
        select m.id from ${schema}.messages as m where m.id in (select ${idOf('sent')} from sent))
      select s.run_id as id from sent as s join live on live.id::text = s.receiver
      where live.created_at < s.at and ${idOf('s')} not in (select id from arrived)`
}
