// The views `queues`: a queue for every workflow, the runs of a workflow and their steps.

import { inputOf, lastData, statusOf, time, type ViewSet } from './view.ts'

export const queues: ViewSet = (schema, payloads) => {
  // A name carries its version, because these tables have no column for it.
  const name = (of: string): string => `${of}.type || '_v' || ${of}.version`
  const known = `(
    select w.type, w.version, min(w.queue) as queue, min(w.at) as at from (
      select type, version, queue, seen_at as at from ${schema}.workflows
      union all select type, version, null, min(created_at) from ${schema}.runs group by type, version) w
    group by w.type, w.version) w`
  const began = `(select min(e.at) from ${schema}.journal e
    where e.shard = r.shard and e.run_id = r.id and e.seq > r.base)`
  const steps = ['step-succeeded', 'step-failed', 'attempt-failed', 'waiting', 'woken'].map((kind) => `'${kind}'`)
  const outcome = (kinds: string, column: string): string => `case when e.kind in (${kinds}) then ${column} end`
  return [
    {
      name: 'queues',
      comment:
        'The queue of each workflow that a process has told of or that has runs. created_at is when that was first so.',
      columns: { queue_id: 'q.name', name: 'q.name', created_at: time('q.at') },
      from: `from (
        select coalesce(w.queue, ${name('w')}) as name, min(w.at) as at from ${known} group by 1) q`,
    },
    {
      name: 'workflows',
      comment:
        'Each version of a workflow that a process has told of or that has runs, with the version in its name. Ids are the ' +
        'names. created_at is when that was first so.',
      columns: {
        workflow_id: name('w'),
        name: name('w'),
        queue_id: `coalesce(w.queue, ${name('w')})`,
        created_at: time('w.at'),
      },
      from: `from ${known}`,
    },
    {
      name: 'workflow_runs',
      comment:
        'A run is PENDING until a worker first claims it, and RUNNING while it is between two attempts. PAUSED are those that ' +
        'wait, too. Cancelled runs are ERROR without an error. started_at is the first commit after the start. worker_id is ' +
        `the session that holds the run. ${payloads.note}`,
      columns: {
        run_id: 'r.id',
        workflow_id: name('r'),
        status: statusOf({
          pending: `case when r.token = 0 then 'PENDING' else 'RUNNING' end`,
          running: `'RUNNING'`,
          cancelling: `'RUNNING'`,
          waiting: `'PAUSED'`,
          paused: `'PAUSED'`,
          succeeded: `'SUCCESS'`,
          failed: `'ERROR'`,
          cancelled: `'ERROR'`,
        }),
        input: payloads.of(inputOf(schema)),
        output: payloads.of(`case when r.status = 'succeeded' then ${lastData(schema, ['succeeded'])} end`),
        error: payloads.of(`case when r.status = 'failed' then ${lastData(schema, ['failed'])} end`),
        created_at: time('r.created_at'),
        started_at: time(began),
        paused_at: time(
          `case when r.status in ('waiting', 'paused') then ${lastData(schema, ['waiting', 'paused'], 'at')} end`,
        ),
        completed_at: time('r.ended_at'),
        worker_id: 'r.session',
      },
      from: `from ${schema}.runs r where r.deleted_at is null`,
    },
    {
      name: 'workflow_steps',
      comment:
        'The last that is known of each step and wait. A step that will be tried again is PENDING; one that is being ' +
        `performed for the first time has no row yet. Inputs of steps are not kept: input is NULL. ${payloads.note}`,
      columns: {
        run_id: 'e.run_id',
        step_id: 'e.name',
        status: statusOf(
          {
            'step-succeeded': `'SUCCESS'`,
            woken: `'SUCCESS'`,
            'step-failed': `'ERROR'`,
            'attempt-failed': `'PENDING'`,
            waiting: `'PAUSED'`,
          },
          'e.kind',
        ),
        input: 'null::text',
        output: outcome(`'step-succeeded', 'woken'`, 'e.data'),
        error: outcome(`'step-failed', 'attempt-failed'`, 'e.data'),
        started_at: time(`e.at - coalesce((e.meta::json ->> 'ms')::bigint, 0)`),
        completed_at: time(outcome(`'step-succeeded', 'step-failed', 'woken'`, 'e.at')),
      },
      from: `from (
        select distinct on (j.shard, j.run_id, j.name) j.run_id, j.name, j.kind, ${payloads.of('j.data')} as data, j.meta,
          j.at
        from ${schema}.journal j join ${schema}.runs r on r.shard = j.shard and r.id = j.run_id and j.seq > r.base
        where r.deleted_at is null and j.name is not null and j.kind in (${steps.join(', ')})
        order by j.shard, j.run_id, j.name, j.seq desc) e`,
    },
    {
      name: 'workers',
      comment: 'The sessions of all processes that work or worked.',
      columns: {
        worker_id: 's.id',
        status: `case when s.ended_at is null then 'polling' else 'stopped' end`,
        started_at: time('s.opened_at'),
        shutdown_at: time('s.ended_at'),
      },
      from: `from ${schema}.sessions s`,
    },
  ]
}
