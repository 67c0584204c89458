// What people ask of runs from outside, and what holders give back. Whoever ends a run with that tells everybody who is to
// know, in the same transaction.

import { holds } from '../../../core/model/run.ts'
import { control, type ControlResult, type ControlCommand } from '../../../core/rules/control.ts'
import { giveBack } from '../../../core/rules/takeover.ts'
import type { ReleasedLease } from '../../../store.ts'
import type { Batch } from './batch.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'
import type { Connection } from '../driver/connection.ts'
import { readRun } from '../read/read.ts'
import { keyHolder } from './rewrite.ts'

/** Does what people ask of runs. What one request made of a run is what the next one finds. */
export function controlRuns(batch: Batch, requests: readonly ControlCommand[]): readonly ControlResult[] {
  // Entries of this batch are not in the table yet.
  const appended = new Set<string>()
  return requests.map((request): ControlResult => {
    const { db, now } = batch
    const { id, runId } = request
    const run = readRun(db, runId)
    if (run === undefined) return { outcome: 'not-found' }
    if (appended.has(`${runId} ${id}`) || hasTransition(db, runId, id)) return { outcome: 'done', run }
    const { answer, write } = control(run, request, now, request.kind === 'retry' ? keyHolder(db, run) : null)
    if (write !== null) {
      new SqliteUnitOfWork(batch).change(run, write, id)
      if (write.append.length > 0) appended.add(`${runId} ${id}`)
    }
    return answer
  })
}

/** Gives a lease back; a lost one is passed over. */
export function releaseOne(batch: Batch, lease: ReleasedLease): void {
  const run = readRun(batch.db, lease.runId)
  if (run === undefined || !holds(run, lease)) return
  new SqliteUnitOfWork(batch).change(run, giveBack(run, batch.now, lease.crashes), null)
}

function hasTransition(db: Connection, runId: string, id: string): boolean {
  const sql = 'select 1 from journal where shard = 0 and run_id = ? and transition_id = ?'
  return db.get(sql, [runId, id]) !== undefined
}
