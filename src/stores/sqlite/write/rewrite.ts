// Writes a whole row back, with entries: the common part of control, takeover, release and the rarer commits. The decision
// was made before; here it is only written, and hints are added.

import { uniqueText } from '../../../core/model/key.ts'
import type { Rewrite } from '../../../core/rules/rewrite.ts'
import type { Keyed } from '../../../core/rules/commit.ts'
import type { Run } from '../../../core/model/run.ts'
import { fedCount } from '../../../core/rules/feed-entries.ts'
import { wakeNamesText } from '../../../core/rows/wake-names.ts'
import type { Batch } from './batch.ts'
import type { Connection } from '../driver/connection.ts'

const rewriteSql = `
  update runs set type = ?, version = ?, unique_key = ?, status = ?, readiness = ?, due = ?, seq = ?, base = ?, control_request = ?,
    undo = ?, crashes = ?, token = ?, session = ?, deadline = ?, timeout_at = ?, expires_at = ?, updated_at = ?,
    ended_at = ?, deleted_at = ?, delete_reason = ?, wake_names = ?, key_id = ?, feed = ?
  where shard = 0 and id = ?`

/** Appends the entries and writes the decided row. */
export function rewriteRun(batch: Batch, before: Run, { run, append }: Rewrite, transition: string | null): void {
  batch.append(run.id, before.seq, append, transition, fedCount(before, run, append.length))
  const { type, version, status, readiness, due, seq, base, undo, crashes, token, session, deadline } = run
  const controlRequest = run.controlRequest === null ? null : JSON.stringify(run.controlRequest)
  const place = [type, version, uniqueText(run), status, readiness, due, seq, base, controlRequest, undo]
  const lease = [crashes, token, session, deadline]
  const times = [run.timeoutAt, run.expiresAt, run.updatedAt, run.endedAt]
  batch.db.run(rewriteSql, [
    ...place,
    ...lease,
    ...times,
    run.deletedAt,
    run.deleteReason,
    wakeNamesText(run.wakeNames, token),
    run.keyId,
    run.feed ? 1 : 0,
    run.id,
  ])
  batch.written(before.status, run)
}

export const keyHolderSql = `
  select id from runs
  where shard = 0 and unique_key = ? and unique_key is not null and ended_at is null and deleted_at is null and id <> ?`

/** The live run, other than this one, that has the business key which this one has or would have. */
export function keyHolder(db: Connection, run: Keyed): string | null {
  const text = uniqueText(run)
  if (text === null) return null
  return (db.get(keyHolderSql, [text, run.id])?.['id'] as string | undefined) ?? null
}
