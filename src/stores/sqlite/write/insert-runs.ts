// Writing new rows. Most new runs are plain: ready or leased, without keys, tags or bounds on their time. They go in
// statements of many rows that leave out every column without a value: measured, these values are the cost of a start.

import { uniqueText } from '../../../core/model/key.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Batch } from './batch.ts'
import type { Value } from '../driver/driver.ts'

const times = 'created_at, updated_at'
const readyColumns = `runs (shard, id, type, version, priority, due, feed, ${times})`
const leasedColumns = `runs (shard, id, type, version, status, readiness, priority, token, session, feed, ${times})`
const bounds = 'deadline, timeout_at, expires_at'
const boundedColumns = `id, type, version, status, readiness, priority, due, token, session, feed, seq, ${bounds}, ${times}`
const nameColumns = 'key, key_scope, unique_key, idempotency_key, started_as, parent_id, tags, metadata, key_id'

export function insertRuns({ db }: Batch, runs: readonly Run[]): void {
  const ready: Value[] = []
  const leased: Value[] = []
  const bounded: Value[] = []
  const named: Value[] = []
  const tags: Value[] = []
  for (const run of runs) {
    const { id, type, version, status, readiness, priority, due, token, session, createdAt: now } = run
    const feed = run.feed ? 1 : 0
    if (isNamed(run)) {
      named.push(...boundedValues(run), ...nameValues(run))
      for (const tag of new Set(run.tags)) tags.push(tag, id)
    } else if (isBounded(run)) bounded.push(...boundedValues(run))
    else if (session === null) ready.push(id, type, version, priority, due, feed, now, now)
    else leased.push(id, type, version, status, readiness, priority, token, session, feed, now, now)
  }
  db.insert(readyColumns, 8, ready)
  db.insert(leasedColumns, 11, leased)
  db.insert(`runs (shard, ${boundedColumns})`, 16, bounded)
  db.insert(`runs (shard, ${boundedColumns}, ${nameColumns})`, 25, named)
  db.insert('tags (shard, tag, run_id)', 2, tags)
}

function isNamed({ key, keyScope, idempotencyKey, parentId, tags, metadata, keyId }: Run): boolean {
  return (
    key !== null ||
    idempotencyKey !== null ||
    parentId !== null ||
    metadata !== null ||
    keyId !== null ||
    tags.length > 0 ||
    keyScope !== 'workflow'
  )
}

function isBounded({ status, deadline, timeoutAt, expiresAt, readiness }: Run): boolean {
  return deadline !== null || timeoutAt !== null || expiresAt !== null || readiness === 'timed' || status === 'waiting'
}

function boundedValues(run: Run): readonly Value[] {
  const { id, type, version, status, readiness, priority, due, token, session, createdAt } = run
  const { deadline, timeoutAt, expiresAt } = run
  const place = [id, type, version, status, readiness, priority, due, token, session, run.feed ? 1 : 0, run.seq]
  return [...place, deadline, timeoutAt, expiresAt, createdAt, createdAt]
}

function nameValues(run: Run): readonly Value[] {
  const { key, keyScope, idempotencyKey, parentId, metadata, keyId } = run
  const tags = run.tags.length === 0 ? null : JSON.stringify(run.tags)
  const startedAs = idempotencyKey === null ? null : run.type
  return [key, keyScope, uniqueText(run), idempotencyKey, startedAs, parentId, tags, metadata, keyId]
}
