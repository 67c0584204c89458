// The claim of one run by its name, ready or due: a process without a worker performs it. Takes the shard, the session, the run, the
// limit, the types, and the keys or null.

import { statement, type Dialect, type Statement } from '../dialect.ts'
import { runColumns } from '../schema/rows.ts'

/** Conditions of every claim: on the times of a run, and whether the session has ended. */
interface Conditions {
  readonly isInTime: string
  readonly hasEnded: string
}

export function namedClaim({ schema, now, skipLocked }: Dialect, { isInTime, hasEnded }: Conditions): Statement {
  return statement(
    ['claim.session', 'claim.pick', 'claim.lease', 'claim.next', 'claim.commit'],
    `
    with clock as materialized (select ${now} as now),
    selector as materialized (
      select * from json_to_recordset($5::text::json) as selector (type text, version integer, lease_ms bigint)),
    locked as materialized (
      select run.id, 0 as "of", 1 as nth, run.rank, run.due from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = $3::uuid and run.readiness in ('ready', 'timed') and run.due <= (select now from clock)
        and ${isInTime} and $4::integer > 0 and not ${hasEnded}
        and (run.key_id is null or $6::text is null
          or run.key_id = any(array(select value from json_array_elements_text($6::text::json) as key (value))))
      for no key update ${skipLocked}),
    leased as (
      update ${schema}.runs as run set
        status = case when run.status = 'cancelling' then run.status else 'running' end, readiness = 'leased', due = null,
        session = $2::text, token = run.token + 1, crashes = run.crashes + 1, deadline = (select now from clock) + selector.lease_ms,
        expires_at = null
      from locked cross join selector
      where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id
        and selector.type = run.type and selector.version = run.version
      returning ${runColumns('run')})
    select clock.now, leased.* from clock left join leased on true`,
  )
}
