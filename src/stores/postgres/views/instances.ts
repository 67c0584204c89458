// The views `instances`: instances, their events, the side effects that they ask for and the timers that wake them.

import { dataOfAny, leaseEndOf, placesOf, time, type ViewSet } from './view.ts'

/** An instance is named by its business key, as its authors know it; by its id if it has none. */
const instance = { workflow_type: 'r.type', workflow_id: 'coalesce(r.key, r.id::text)' }

const whoseEntry = 'r.shard = e.shard and r.id = e.run_id'

export const instances: ViewSet = (schema, payloads) => {
  const ofRun = (from: string): string => `from ${schema}.journal e join ${schema}.runs r on ${whoseEntry} ${from}`
  const failures = (kind: string): string => `from ${schema}.journal a
    where a.shard = e.shard and a.run_id = e.run_id and a.seq > e.seq and a.name = e.name and a.kind ${kind}`
  const done = `in ('effect-succeeded', 'effect-failed')`
  const has = (kind: string): string => `exists (
    select 1 from ${schema}.journal h where h.shard = r.shard and h.run_id = r.id and h.kind = '${kind}')`
  const lock = { locked_until: time(leaseEndOf(schema)), locked_by: 'r.session' }
  // A timer is over when its input came, when it was cancelled, and when another took its key.
  const over = `(select min(a.at) from ${schema}.journal a
    where a.shard = e.shard and a.run_id = e.run_id and a.seq > e.seq and (
      a.kind in ('timer', 'timer-cancelled') and a.name = e.name
      or a.kind = 'input' and a.meta::json -> 'from' ->> 'kind' = 'timer' and a.meta::json -> 'from' ->> 'name' = e.name
      or a.kind in ('succeeded', 'failed', 'cancelled')))`
  return [
    {
      name: 'workflow_instances',
      comment:
        'workflow_id is the business key of a run, or its id. A key may be used again when its run has ended, so run_id ' +
        'tells runs apart. There are no snapshots: their columns are NULL.',
      columns: {
        ...instance,
        created_at: time('r.created_at'),
        completed_at: time('r.ended_at'),
        event_count: 'r.seq',
        last_event_at: time('r.updated_at'),
        snapshot_sequence: 'null::bigint',
        snapshot_data: 'null::text',
        snapshot_at: 'null::timestamptz',
        run_id: 'r.id',
      },
      from: `from ${schema}.runs r`,
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
        'The side effects that deciders asked for. An effect is locked with its run, whose holder performs it. ' +
        payloads.note,
      columns: {
        id: `r.id::text || ':' || e.seq`,
        ...instance,
        effect_type: `split_part(e.name, '#', 1)`,
        payload: payloads.of('e.data'),
        ...lock,
        attempts: `(select count(*)::integer ${failures(`in ('attempt-failed', 'effect-succeeded', 'effect-failed')`)})`,
        last_error: payloads.of(
          `(select a.data ${failures(`in ('attempt-failed', 'effect-failed')`)} order by a.seq desc limit 1)`,
        ),
        created_at: time('e.at'),
        processed_at: time(`(select min(a.at) ${failures(done)})`),
        run_id: 'r.id',
      },
      from: ofRun(`where e.kind = 'effect'`),
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
        select r.id::text || ':' || e.seq as id, e.name as key, ${payloads.of('e.data')} as input, e.at as created_at,
          coalesce((e.meta::json ->> 'at')::bigint, e.at + (e.meta::json ->> 'afterMs')::bigint) as fire_at,
          ${over} as processed_at
        from ${schema}.journal e where ${whoseEntry} and e.kind = 'timer'
        union all
        select r.id::text, null, null, r.updated_at, r.due, null
        where r.status = 'waiting' and r.due is not null and r.deleted_at is null and not ${has('timer')}
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
        where m.shard = r.shard and m.run_id = r.id and not ${has('input')}
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
