// The views `instances`: instances, their events, the side effects that they ask for and the timers that wake them.

import { dataOfAny, leaseEndOf, placesOf, time, type ViewSet } from './view.ts'

/** Effects are runs, too: the instance that asks for them shows them. */
const isEffect = `strpos(r.type, '/') > 0`

const whoseEntry = 'r.shard = e.shard and r.id = e.run_id'

export const instances: ViewSet = (schema, payloads) => {
  const ofRun = (from: string): string => `from ${schema}.journal e join ${schema}.runs r on ${whoseEntry} ${from}`
  const has = (kind: string): string => `exists (
    select 1 from ${schema}.journal h where h.shard = r.shard and h.run_id = r.id and h.kind = '${kind}')`
  // The id of an instance of a decider is its idempotency key; of every other run authors know the business key.
  const named = `case when ${has('input')} then r.idempotency_key end`
  const instance = { workflow_type: 'r.type', workflow_id: `coalesce(${named}, r.key, r.id::text)` }
  const lock = { locked_until: time(leaseEndOf(schema)), locked_by: 'r.session' }
  // The run that performs an effect, by the id that follows from the entry (`effectRunId`): its metadata is not for viewers.
  const hash = `encode(sha256(convert_to(r.id::text || ':' || e.seq, 'UTF8')), 'hex')`
  const performer = `left join ${schema}.runs c on c.shard = r.shard
    and c.id = (left(r.id::text, 18) || '-8' || regexp_replace(left(${hash}, 15), '^(...)', '\\1-'))::uuid`
  // What its journal says of its attempts.
  const tried = (kinds: string): string => `from ${schema}.journal a
    where a.shard = c.shard and a.run_id = c.id and a.kind in (${kinds})`
  const isSnapshot = (column: string): string => `(select ${column} from ${schema}.journal s
    where s.shard = r.shard and s.run_id = r.id and s.seq = r.base and s.kind = 'snapshot')`
  // A timer is over when its input came, when it was cancelled, and when another took its key.
  const over = `(select min(a.at) from ${schema}.journal a
    where a.shard = e.shard and a.run_id = e.run_id and a.seq > e.seq and (
      a.kind in ('timer', 'timer-cancelled', 'timer-failed') and a.name = e.name
      or a.kind = 'input' and a.meta::json -> 'from' ->> 'kind' = 'timer' and a.meta::json -> 'from' ->> 'name' = e.name
      or a.kind in ('succeeded', 'failed', 'cancelled')))`
  return [
    {
      name: 'workflow_instances',
      comment:
        'workflow_id is the id of an instance of a decider, and of every other run its business key, or its id. A key may be ' +
        'used again when its run has ended, so run_id tells runs apart. The snapshot is the one that the next fold begins at. ' +
        payloads.note,
      columns: {
        ...instance,
        created_at: time('r.created_at'),
        completed_at: time('r.ended_at'),
        event_count: 'r.seq',
        last_event_at: time('r.updated_at'),
        snapshot_sequence: isSnapshot('s.seq'),
        snapshot_data: payloads.of(isSnapshot('s.data')),
        snapshot_at: time(isSnapshot('s.at')),
        run_id: 'r.id',
      },
      from: `from ${schema}.runs r where not ${isEffect}`,
    },
    {
      name: 'events',
      comment:
        'Every entry of the journal. event_type is the type that a decider gave its event, and for everything else the kind ' +
        'of the entry. global_sequence is computed from the whole feed, and NULL until it is given, or if the feed does not list ' +
        'the run. ' +
        payloads.note,
      columns: {
        global_sequence: 'f.position',
        ...instance,
        sequence: 'e.seq',
        event_type: `case when e.kind = 'event' then e.name else e.kind end`,
        payload: payloads.of(dataOfAny),
        created_at: time('e.at'),
        run_id: 'r.id',
      },
      from: ofRun(`left join ${placesOf(schema)} on f.run_id = e.run_id and f.seq = e.seq`),
    },
    {
      name: 'outbox',
      comment:
        'The side effects that deciders asked for. Each is performed, tried again and locked as a run of its own, which run_id ' +
        'names. One that gave up is a dead letter: it is not processed. ' +
        payloads.note,
      columns: {
        id: `r.id::text || ':' || e.seq`,
        ...instance,
        effect_type: `split_part(e.name, '#', 1)`,
        payload: payloads.of('e.data'),
        locked_until: time(leaseEndOf(schema, 'c')),
        locked_by: 'c.session',
        attempts: `(select count(*)::integer ${tried(`'attempt-failed', 'succeeded', 'failed'`)})`,
        last_error: payloads.of(`(select a.data ${tried(`'attempt-failed', 'failed'`)} order by a.seq desc limit 1)`),
        created_at: time('e.at'),
        processed_at: time(`case when c.status = 'succeeded' then c.ended_at end`),
        run_id: 'coalesce(c.id, r.id)',
      },
      from: ofRun(`${performer} where e.kind = 'effect'`),
    },
    {
      name: 'timers',
      comment:
        'The timers of deciders, and for every other run that waits for a time one row without key and input. A timer is ' +
        `locked with its run; attempts and last_error are not counted by timer. ${payloads.note}`,
      columns: {
        id: 't.id',
        ...instance,
        key: 't.key',
        fire_at: time('t.fire_at'),
        input: 't.input',
        ...lock,
        attempts: '0',
        last_error: 'null::text',
        created_at: time('t.created_at'),
        processed_at: time('t.processed_at'),
        run_id: 'r.id',
      },
      from: `from ${schema}.runs r cross join lateral (
        select r.id::text || ':' || e.seq as id, case when e.name not like '#%' then e.name end as key, ${payloads.of('e.data')} as input, e.at as created_at,
          coalesce((e.meta::json ->> 'at')::bigint, e.at + (e.meta::json ->> 'afterMs')::bigint) as fire_at,
          ${over} as processed_at
        from ${schema}.journal e where ${whoseEntry} and e.kind = 'timer'
        union all
        select r.id::text, null, null, r.updated_at, r.due, null
        where r.status = 'waiting' and r.due is not null and r.deleted_at is null and not ${has('timer')} and not ${isEffect}
      ) t`,
    },
    {
      name: 'input_observations',
      comment: 'The inputs of deciders, and the messages that were left for every other run.',
      columns: { ...instance, input_type: 'i.input_type', observed_at: time('i.at'), run_id: 'r.id' },
      from: `from ${schema}.runs r cross join lateral (
        select e.name as input_type, e.at from ${schema}.journal e where ${whoseEntry} and e.kind = 'input'
        union all
        select m.name, m.at from ${schema}.messages m
        where m.shard = r.shard and m.run_id = r.id and not ${has('input')} and not ${isEffect}
      ) i`,
    },
    {
      name: 'projection_positions',
      comment: 'Empty: the store keeps no projections.',
      columns: {
        projection_name: 'null::text',
        last_sequence: 'null::bigint',
        updated_at: 'null::timestamptz',
      },
      from: 'where false',
    },
  ]
}
