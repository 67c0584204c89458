// What breaks each state invariant, as SQL that every store with tables understands: for tests that break something by hand
// and look whether it is found.

import type { Corpus } from './corpus.ts'

/** A name, the run that is to break it, and the statement that does; `?` is the id of the run. */
export type Plant = readonly [name: string, special: keyof Corpus['ids'], ...statements: string[]]

const setRun = (change: string): string => `update runs set ${change} where id = ?`
const setEntry = (change: string, which: string): string => `update journal set ${change} where run_id = ? and ${which}`
/** Appends an entry. */
const append = (kind: string, name: string | null, meta = 'null', data = 'null'): readonly string[] => [
  `insert into journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
   select 0, id, seq + 1, '${kind}', ${name === null ? 'null' : `'${name}'`}, ${meta}, ${data}, updated_at, null
   from runs where id = ?`,
  setRun('seq = seq + 1'),
]
const withUndo = `'{"attempt":1,"ms":1,"undo":true}'`
const done = `'{"attempt":1,"ms":1}'`
const ended = `'{"reason":null,"notUndone":[]}'`

const addWait = (kind: string, target: string, delivery: string): string =>
  `insert into waits (shard, kind, target, run_id, effect, delivery, opened_at)
   select 0, '${kind}', ${target}, id, 'notify', ${delivery}, 1 from runs where id = ?`
const anEnded = `(select cast(id as text) from runs where status = 'succeeded' order by id limit 1)`
const openBroadcast = `
  insert into broadcasts (shard, topic, position, id, delivery, data, policy, at, expires_at, taken_by, delivered_to)
  values (0, 'jobs', 1, 'b', 'one', '1', null, 1, null, null, 0)`

/** A projection that is named as the run. */
function addProjection(part: string, changes: Readonly<Record<string, string>>): string {
  const usual = { definition: `'v1'`, status: `'active'`, begun: '1', position: '0', token: '1', skipped: `'[]'` }
  const row = { shard: '0', name: '?', part: `'${part}'`, ...usual, created_at: '1', updated_at: '1', ...changes }
  return `insert into projections (${Object.keys(row).join(', ')}) values (${Object.values(row).join(', ')})`
}

export const plants: readonly Plant[] = [
  ['history_gapless', 'succeeded', 'delete from journal where run_id = ? and seq = 2'],
  ['seq_counts_entries', 'succeeded', setRun('seq = seq + 1')],
  ['history_single_writer', 'failed', setEntry(`transition_id = 'same'`, 'seq < 3')],
  ['history_begins_with_start', 'ready', setEntry('transition_id = null', 'seq = 1')],
  ['history_begins_with_start', 'waiting', ...append('started', null, 'null', `'1'`)],
  ['base_is_input', 'succeeded', setRun('base = 2')],
  ['base_is_input', 'continued', setRun('version = 2')],
  ['base_is_input', 'continued', setRun('base = 1')],
  ['state_is_fold', 'waiting', ...append('succeeded', null, 'null', `'1'`)],
  ['state_is_fold', 'paused', ...append('resumed', null, `'{"note":null}'`)],
  ['status_fields_match', 'running', setRun('session = null')],
  ['status_fields_match', 'running', setRun(`readiness = 'ready', due = 1`)],
  ['status_fields_match', 'running', setRun('token = 0')],
  ['status_fields_match', 'running', setRun('expires_at = 1')],
  ['status_fields_match', 'running', setRun(`control_request = '{"kind":"cancel","reason":null,"at":1}'`)],
  [
    'status_fields_match',
    'ready',
    setRun(`control_request = '{"kind":"pause","reason":"operator","note":null,"at":1}'`),
  ],
  ['status_fields_match', 'ready', setRun('deadline = 5')],
  ['status_fields_match', 'ready', setRun(`readiness = 'idle', due = null`)],
  ['status_fields_match', 'ready', setRun('due = null')],
  ['status_fields_match', 'ready', setRun('deleted_at = 1')],
  ['status_fields_match', 'ready', setRun(`delete_reason = 'x'`)],
  ['status_fields_match', 'timed', setRun(`ended_at = 5`)],
  ['status_fields_match', 'paused', setRun(`readiness = 'ready', due = 1`)],
  ['status_fields_match', 'succeeded', setRun('ended_at = null')],
  ['status_fields_match', 'succeeded', setRun(`session = 'alive', readiness = 'leased'`)],
  ['status_fields_match', 'cancelling', setRun('timeout_at = 5')],
  ['status_fields_match', 'cancelling', setRun(`undo = 'none'`)],
  ['status_fields_match', 'succeeded', setRun(`undo = 'due'`)],
  ['ready_is_due', 'ready', setRun('due = 9000000000000')],
  ['ids_nonempty_bounded', 'keyed', setRun(`idempotency_key = ''`)],
  ['ids_nonempty_bounded', 'keyed', setRun(`key = '${'k'.repeat(401)}'`)],
  ['ids_nonempty_bounded', 'succeeded', setEntry(`name = ''`, 'seq = 2')],
  ['ids_nonempty_bounded', 'running', `update messages set id = '' where run_id = ?`],
  ['one_outcome', 'waiting', ...append('step-failed', 'work', done, `'1'`)],
  ['amends_outcome', 'waiting', ...append('amended', null, `'{"seq":1,"dropped":true}'`)],
  ['cancel_wins_or_loses_once', 'failed', ...append('cancelled', null, ended), setRun(`status = 'cancelled'`)],
  [
    'cancel_wins_or_loses_once',
    'retried',
    setEntry(`kind = 'cancelled', meta = ${ended}, data = null`, `kind = 'failed'`),
  ],
  ['undo_is_fold', 'waiting', setRun(`undo = 'possible'`)],
  ['undo_is_fold', 'waiting', setEntry(`meta = ${withUndo}`, `kind = 'step-succeeded'`)],
  ['undo_names_step', 'waiting', ...append('undone', 'work', done)],
  ['undo_names_step', 'undone', setEntry(`name = 'unknown'`, `kind = 'undone' and name = 'book'`)],
  ['undo_once', 'cancelling', ...append('undone', 'book', done), ...append('undo-failed', 'book', done, `'1'`)],
  ['undo_in_reverse', 'cancelling', ...append('undone', 'book', done), ...append('undone', 'charge', done)],
  ['mailbox_dense', 'running', setRun('inbox = 2')],
  ['mailbox_dense', 'running', 'update messages set position = 3 where run_id = ?'],
  ['mailbox_dense', 'running', 'delete from messages where run_id = ?'],
  ['signal_consumed_at_most_once', 'running', 'update messages set taken_by = 99 where run_id = ?'],
  [
    'signal_consumed_at_most_once',
    'running',
    'drop index messages_id',
    `insert into messages (shard, run_id, position, id, name, data, at, outcome)
     select 0, run_id, 2, id, name, data, at, outcome from messages where run_id = ?`,
    setRun('inbox = 2'),
  ],
  ['no_lost_wakeup', 'woken', setRun(`readiness = 'idle', due = null`)],
  ['no_lost_wakeup', 'woken', setRun(`readiness = 'timed', due = 9000000000000`)],
  ['wake_names_cover_waits', 'listening', setRun(`wake_names = '{"token":' || token || ',"names":["stop"]}'`)],
  ['end_notified', 'listening', addWait('run', anEnded, 'null')],
  [
    'end_notified',
    'listening',
    addWait('run', anEnded, 'null'),
    `insert into chores (shard, kind, target, position, after_opened_at, after_run, due)
     select 0, 'end', ${anEnded}, 0, 2, id, 1 from runs where id = ?`,
  ],
  ['queue_not_stuck', 'listening', addWait('topic', `'jobs'`, `'one'`), openBroadcast],
  [
    'late_catch_up',
    'listening',
    addWait('topic', `'news'`, `'all'`),
    `update waits set missed = 1 where kind = 'topic' and run_id = ?`,
  ],
  [
    'leftovers_settled',
    'succeeded',
    `insert into messages (shard, run_id, position, id, name, data, at, outcome)
     select 0, id, inbox + 1, 'left', 'go', '1', updated_at, 'queued' from runs where id = ?`,
    setRun('inbox = inbox + 1'),
    `insert into chores (shard, kind, target, position, due) select 0, 'messages', cast(id as text), inbox, 1
     from runs where id = ?`,
  ],
  [
    'sent_delivered',
    'waiting',
    ...append(
      'signal-sent',
      'go',
      `'{"to":"' || cast(id as text) || '","signal":"go","kind":"signal","policy":null}'`,
      `'1'`,
    ),
  ],
  ['waits_for_something', 'listening', ...append('woken', 'go', `'{"winner":"go","trueAt":1,"seenAt":1}'`)],
  ['timer_is_set', 'waiting', setRun(`readiness = 'idle', due = null`)],
  ['timer_is_set', 'waiting', setRun('due = due + 90000000')],
  ['timer_once', 'waiting', ...append('woken', 'sleep', `'{"winner":"time","trueAt":1,"seenAt":1}'`)],
  ['timer_never_early', 'waiting', setEntry(`at = at - 1`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`meta = replace(meta, '"trueAt":', '"trueAt":-')`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`meta = replace(meta, '"seenAt":', '"seenAt":-')`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`meta = replace(meta, '"winner":"', '"winner":"x')`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`name = 'other'`, `kind = 'waiting' and seq = 2`)],
  ['due_is_earliest_timer', 'deciding', setRun(`readiness = 'idle', due = null`)],
  ['due_is_earliest_timer', 'deciding', setRun('due = due + 1')],
  ['due_is_earliest_timer', 'deciding', setRun('due = due - 1')],
  ['due_is_earliest_timer', 'deciding', ...append('timer-cancelled', 'late')],
  [
    'due_is_earliest_timer',
    'deciding',
    ...append('attempt-failed', 'late', `'{"attempt":1,"ms":0,"delayMs":1}'`, `'1'`),
  ],
  [
    'due_is_earliest_timer',
    'deciding',
    ...append('input', null, `'{"from":{"kind":"timer","name":"late","dueAt":1},"outcome":"accepted"}'`),
  ],
  ['due_is_earliest_timer', 'deciding', ...append('timer', '#9', `'{"at":7,"afterMs":null}'`, `'1'`)],
  ['effect_runs_follow_journal', 'deciding', `update runs set parent_id = null where parent_id = ?`],
  ['effect_runs_follow_journal', 'deciding', `update runs set type = 'order/call' where parent_id = ?`],
  [
    'effect_runs_follow_journal',
    'deciding',
    `update runs set metadata = '{"effect":"sendMail#0"}' where parent_id = ?`,
  ],
  [
    'effect_runs_follow_journal',
    'performing',
    `update journal set kind = 'logged' where kind = 'effect' and run_id = (select parent_id from runs where id = ?)`,
  ],
  [
    'one_key_one_live_run',
    'ready',
    'drop index if exists runs_unique',
    setRun(`key = 'order-1', unique_key = 'workflow idle order-1'`),
  ],
  [
    'idempotency_key',
    'ready',
    'drop index if exists runs_idempotency',
    setRun(`idempotency_key = 'once', started_as = 'idle'`),
  ],
  ['feed_dense', 'ready', 'delete from feed where position = (select min(position) from feed)'],
  ['feed_complete', 'retrying', setRun('feed = not feed')],
  ['feed_complete', 'ready', setRun('feed = not feed')],
  ['feed_complete', 'continued', setRun('feed = not feed')],
  ['nothing_without_run', 'running', 'delete from runs where id = ?'],
  ['nothing_without_topic', 'listening', addWait('topic', `'news'`, `'all'`)],
  ['projection_in_feed', 'ready', addProjection('live', { position: '1000000000' })],
  ['projection_in_feed', 'ready', addProjection('live', { status: `'parked'` })],
  ['projection_in_feed', 'ready', addProjection('live', { status: `'paused'`, session: `'s'`, alive_until: '1' })],
  ['projection_in_feed', 'ready', addProjection('live', { session: `'s'` })],
  ['projection_in_feed', 'ready', addProjection('rebuild', {})],
  ['key_text_derived', 'keyed', setRun(`unique_key = 'workflow idle other'`)],
  ['tags_listed', 'ready', `delete from tags where tag = 'a' and run_id = ?`],
  ['tags_listed', 'ready', `insert into tags (shard, tag, run_id) values (0, 'c', ?)`],
  ['rows_well_formed', 'ready', setRun(`tags = '{x'`)],
  ['rows_well_formed', 'ready', setRun(`metadata = '7'`)],
  ['rows_well_formed', 'ready', setRun(`status = 'made up'`)],
  ['rows_well_formed', 'ready', setRun(`readiness = 'made up', due = null`)],
  ['rows_well_formed', 'ready', setRun(`undo = 'made up'`)],
  ['rows_well_formed', 'waiting', setEntry(`meta = '{"conditions"'`, `kind = 'waiting'`)],
  ['rows_well_formed', 'succeeded', setEntry(`kind = 'made up'`, 'seq = 2')],
]
