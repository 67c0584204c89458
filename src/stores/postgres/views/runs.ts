// The views `runs`: one row for each run, and one for each entry of its journal.

import { dataOfAny, inputOf, lastData, leaseEndOf, placesOf, statusOf, time, type ViewSet } from './view.ts'

export const runs: ViewSet = (schema, payloads) => {
  const errors = ['failed', 'failing', 'step-failed', 'attempt-failed', 'undo-failed', 'undo-attempt-failed']
  return [
    {
      name: 'workflow_run',
      comment:
        'waiting and paused runs are pending, running ones leased; so is a run that is being cancelled while a session holds ' +
        'it. attempt counts the failures of the whole run since it was last retried by hand; max_attempts is NULL where the ' +
        `workflow, and not the start, says it. last_error is the latest error of the run or a step. ${payloads.note}`,
      columns: {
        id: 'r.id',
        type: 'r.type',
        status: statusOf({
          pending: `'pending'`,
          waiting: `'pending'`,
          paused: `'pending'`,
          running: `'leased'`,
          cancelling: `case when r.session is null then 'pending' else 'leased' end`,
          succeeded: `'succeeded'`,
          failed: `'failed'`,
          cancelled: `'cancelled'`,
        }),
        priority: '-r.rank',
        idempotency_key: 'r.idempotency_key',
        payload: payloads.of(inputOf(schema)),
        result: payloads.of(`case when r.status = 'succeeded' then ${lastData(schema, ['succeeded'])} end`),
        error: payloads.of(`case when r.status = 'failed' then ${lastData(schema, ['failed'])} end`),
        last_error: payloads.of(lastData(schema, errors)),
        attempt: `(select count(*)::integer from ${schema}.journal e
          where e.shard = r.shard and e.run_id = r.id and e.name is null and e.kind in ('attempt-failed', 'failed')
            and e.seq > greatest(r.base, coalesce((select max(b.seq) from ${schema}.journal b
              where b.shard = r.shard and b.run_id = r.id and b.kind = 'retried'), 0)))`,
        max_attempts: `(select (e.meta::json ->> 'maxAttempts')::integer from ${schema}.journal e
          where e.shard = r.shard and e.run_id = r.id and e.seq = 1)`,
        run_at: time('coalesce(r.due, r.created_at)'),
        lease_until: time(leaseEndOf(schema)),
        leased_by: 'r.session',
        created_at: time('r.created_at'),
        updated_at: time('r.updated_at'),
        deleted_at: time('r.deleted_at'),
        delete_reason: 'r.delete_reason',
      },
      from: `from ${schema}.runs r`,
    },
    {
      name: 'workflow_event',
      comment:
        'started is created, an attempt of the whole run that failed is retried; everything else has the name of its entry ' +
        'in the journal. Leases and heartbeats leave no entry. id is the place among all entries, which is computed from ' +
        `the whole feed, and NULL until it is given, or if the run is not in the feed. ${payloads.note}`,
      columns: {
        id: 'f.position',
        workflow_id: 'e.run_id',
        event_type: `case when e.kind = 'started' then 'created'
          when e.kind = 'attempt-failed' and e.name is null then 'retried' else e.kind end`,
        data: payloads.of(dataOfAny),
        created_at: time('e.at'),
      },
      from: `from ${schema}.journal e left join ${placesOf(schema)} on f.run_id = e.run_id and f.seq = e.seq`,
    },
    {
      name: 'outbox_event',
      comment: 'Empty: the store has no outbox.',
      columns: {
        id: 'null::bigint',
        aggregate_id: 'null::uuid',
        event_type: 'null::text',
        payload: 'null::text',
        published_at: 'null::timestamptz',
      },
      from: 'where false',
    },
  ]
}
