// The views `waits`: the waits of runs, the end of each wait, and the messages in their mailboxes.

import { lastData, statusOf, time, type ViewSet } from './view.ts'

export const waits: ViewSet = (schema, payloads) => {
  const data = payloads.of('e.data')
  const waiting = lastData(schema, ['waiting'], 'meta')
  const waitsFor = (kind: string, value: string): string => `case when r.status = 'waiting' then (
      select array_agg(c ->> '${value}') from json_array_elements(${waiting}::json -> 'conditions') c
      where c ->> 'kind' = '${kind}') end`
  // The conditions of a wait are in the entry that began it: the last one of that name before its end.
  const won = `from ${schema}.journal e cross join lateral (
      select c from ${schema}.journal w cross join lateral json_array_elements(w.meta::json -> 'conditions') c
      where w.shard = e.shard and w.run_id = e.run_id and w.seq < e.seq and w.kind = 'waiting' and w.name = e.name
        and c ->> 'tag' = e.meta::json ->> 'winner'
      order by w.seq desc limit 1) w
    where e.kind = 'woken'`
  return [
    {
      name: 'workflows',
      comment:
        'Runs that are pending, running or being cancelled are Running; runs that wait or are paused are Suspended. The ' +
        'columns of what a run waits for are NULL unless it waits.',
      columns: {
        id: 'r.id',
        type: 'r.type',
        status: statusOf({
          pending: `'Running'`,
          running: `'Running'`,
          cancelling: `'Running'`,
          waiting: `'Suspended'`,
          paused: `'Suspended'`,
          succeeded: `'Succeeded'`,
          failed: `'Failed'`,
          cancelled: `'Cancelled'`,
        }),
        waiting_for_events: waitsFor('signal', 'name'),
        waiting_for_timer: time(`case when r.status = 'waiting' then r.due end`),
        waiting_for_workflows: waitsFor('run', 'runId'),
        created_at: time('r.created_at'),
        updated_at: time('r.updated_at'),
      },
      from: `from ${schema}.runs r where r.deleted_at is null`,
    },
    {
      name: 'activity_steps',
      comment: `activity_index is the number of the entry in the journal: it grows, with gaps. ${payloads.note}`,
      columns: { workflow_id: 'e.run_id', activity_index: 'e.seq', value: data, error: 'null::text' },
      from: `from ${schema}.journal e where e.kind in ('step-succeeded', 'recorded', 'woken', 'effect-succeeded')
        union all select e.run_id, e.seq, null, ${data} from ${schema}.journal e where e.kind in ('step-failed', 'effect-failed')`,
    },
    {
      name: 'winning_conditions',
      comment: 'How each wait ended. activity_index is that of its value in activity_steps.',
      columns: {
        workflow_id: 'e.run_id',
        activity_index: 'e.seq',
        condition_type: statusOf(
          { signal: `'event'`, time: `'timer'`, delay: `'timer'`, run: `'workflow'` },
          `w.c ->> 'kind'`,
        ),
        event_name: `w.c ->> 'name'`,
      },
      from: won,
    },
    {
      name: 'pending_events',
      comment: 'Empty: every message has a target.',
      columns: {
        event_id: 'null::text',
        event_name: 'null::text',
        value: 'null::text',
        created_at: 'null::timestamptz',
      },
      from: 'where false',
    },
    {
      name: 'workflow_pending_events',
      comment: `Messages that their run has not taken. ${payloads.note}`,
      columns: {
        workflow_id: 'm.run_id',
        event_id: 'm.id',
        event_name: 'm.name',
        value: payloads.of('m.data'),
        created_at: time('m.at'),
      },
      from: `from ${schema}.messages m where m.taken_by is null`,
    },
  ]
}
