// The common checks of all SQL stores: conditions on a row of `runs` by itself, which are the same everywhere, and those that
// only tables can violate.

import { entryKinds } from '../core/model/entry.ts'
import { projectionParts, projectionStatuses } from '../core/rules/projections/projection-row.ts'
import { readinesses, runStatuses, undoStates } from '../core/model/run.ts'

const isOver = `status in ('succeeded', 'failed', 'cancelled')`

const wrongLease = `
  (session is not null) <> (readiness = 'leased')
  or (session is not null and status not in ('running', 'cancelling'))
  or (session is not null and token < 1)
  or (session is null and status = 'running')
  or (session is null and deadline is not null)
  or (control_request is not null and status not in ('running', 'cancelling'))
  or (status = 'running' and control_request not like '{"kind":"pause"%')
  or (status = 'cancelling' and control_request not like '{"kind":"cancel"%')`

const wrongReadiness = `
  (readiness <> 'blocked' and (readiness in ('ready', 'timed', 'isolated')) <> (due is not null))
  or (readiness = 'isolated' and (status not in ('pending', 'cancelling') or crashes < 2))
  or (readiness = 'idle' and session is null and deleted_at is null and status in ('pending', 'cancelling'))
  or (readiness <> 'idle' and session is null and (deleted_at is not null or status = 'paused' or ${isOver}))`

const wrongBounds = `
  ((status = 'cancelling' or (undo = 'due' and ended_at is null)) and (timeout_at is not null or expires_at is not null))
  or (status = 'cancelling' and session is null and undo = 'none')
  or (status = 'succeeded' and undo = 'due')
  or (expires_at is not null and (token > 0 or status not in ('pending', 'paused')))`

const wrongEnd = `
  (${isOver}) <> (ended_at is not null)
  or (deleted_at is null and delete_reason is not null)`

/** `status_fields_match`: the fields that belong to each status of a run, clause by clause as in `core/invariants/row.ts`. */
export const wrongStatusFields = [wrongLease, wrongReadiness, wrongBounds, wrongEnd].join(' or ')

/** The text that is unique among live runs, as `uniqueText` makes it. */
const uniqueKey = `case key_scope when 'workflow' then 'workflow ' || type || ' ' || key
  when 'version' then 'version ' || type || ' ' || cast(version as text) || ' ' || key
  when 'global' then 'global ' || key end`

export const wrongKeyText = `coalesce(unique_key, '') <> coalesce(${uniqueKey}, '')`

const isText = (column: string, pattern: string): string =>
  `(${column} is not null and ${column} not like '${pattern}')`

const isNone = (column: string, known: readonly string[]): string =>
  `${column} not in (${known.map((value) => `'${value}'`).join(', ')})`

/**
 * Columns of a run that the engine cannot have written: values that there are not, and texts as far as their first and last
 * characters show.
 */
export const malformedRun = [
  isNone('status', runStatuses),
  isNone('readiness', readinesses),
  isNone('undo', undoStates),
  isText('tags', '["%"]'),
  isText('metadata', '{"%}'),
  `(control_request is not null and control_request not like '{"kind":"pause","reason":"%}' and control_request not like '{"kind":"cancel","reason":%}')`,
].join(' or ')

const alwaysData = `'started', 'continued', 'step-succeeded', 'step-failed', 'attempt-failed', 'recorded', 'failed', 'succeeded'`
const alwaysMeta = `'step-succeeded', 'step-failed', 'attempt-failed', 'waiting', 'woken', 'paused', 'amended', 'crashed'`

/** Entries of which the same is true. */
export const malformedEntry = `
  ${isText('meta', '{%}')} or (meta is null and kind in (${alwaysMeta})) or (data is null and kind in (${alwaysData}))
  or ${isNone('kind', entryKinds)}`

/** What a projection says of itself; where it is, is compared with the feed. */
export const wrongProjection = `
  (status = 'parked') <> (failure is not null) or (session is null) <> (alive_until is null)
  or (session is not null and status <> 'active') or (part = 'live' and begun = 0)
  or ${isNone('status', projectionStatuses)} or ${isNone('part', projectionParts)}`

/** In addition to `core/invariants`. */
export const tableInvariants = [
  {
    name: 'nothing_without_run',
    kind: 'S',
    about: 'Entries, messages and tags belong to a run that is there.',
  },
  {
    name: 'nothing_without_topic',
    kind: 'S',
    about: 'A topic on which a run waits is there.',
  },
  {
    name: 'key_text_derived',
    kind: 'S',
    about:
      'The texts that keep keys unique are made of the key, scope, type and version of their run; where they stand in a table ' +
      'of their own, that has those of runs that hold them, and no others.',
  },
  {
    name: 'tags_listed',
    kind: 'S',
    about: 'The tags of a run are those that it is found by.',
  },
  {
    name: 'projection_in_feed',
    kind: 'S',
    about:
      'No projection has passed more than the feed has; one with a holder is active, one that is parked names its event, and a ' +
      'rebuild has a live part.',
  },
  {
    name: 'rows_well_formed',
    kind: 'S',
    about:
      'Rows hold what the engine writes: statuses and kinds that there are, with meta, tags, metadata and control requests in their form.',
  },
] as const
