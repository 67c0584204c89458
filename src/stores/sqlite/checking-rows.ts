// `status_fields_match` as a statement: what the status of a run says of its other fields, clause by clause as in
// `core/invariants/row.ts`.

const isOver = `status in ('succeeded', 'failed', 'cancelled')`

const wrongLease = `
  (session is not null) <> (readiness = 'leased')
  or (session is not null and status not in ('running', 'cancelling'))
  or (session is not null and token < 1)
  or (session is null and status = 'running')
  or (session is null and deadline is not null)
  or (wish is not null and status not in ('running', 'cancelling'))
  or (status = 'running' and wish not like '{"kind":"pause"%')
  or (status = 'cancelling' and wish not like '{"kind":"cancel"%')`

const wrongReadiness = `
  (readiness <> 'blocked' and (readiness in ('ready', 'timed')) <> (due is not null))
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

export const statusFieldsMatchSql = `
  select id from runs where shard = 0 and (${[wrongLease, wrongReadiness, wrongBounds, wrongEnd].join(' or ')})`
