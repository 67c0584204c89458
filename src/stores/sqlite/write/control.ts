// Control commands and released leases, by the rules of the core.

import type { Keyed } from '../../../core/rules/commit.ts'
import { controlRun, type ControlWork } from '../../../core/rules/control-run.ts'
import { releaseRun } from '../../../core/rules/claims/rescue.ts'
import type { Rewrite } from '../../../core/rules/rewrite.ts'
import type { Run } from '../../../core/model/run.ts'
import type { ControlCommand, ControlResult, ReleasedLease } from '../../../store.ts'
import type { Batch } from './batch.ts'
import { keyHolder } from './rewrite.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'

/** Executes control commands. Each sees the effects of those before it. */
export function controlRuns(batch: Batch, requests: readonly ControlCommand[]): readonly ControlResult[] {
  const work = new SqliteControlWork(batch)
  return requests.map((request) => controlRun(work, work.run(request.runId), request))
}

/** Gives a lease back; a lost one is passed over. */
export function releaseOne(batch: Batch, lease: ReleasedLease): void {
  const work = new SqliteUnitOfWork(batch)
  releaseRun(work, work.run(lease.runId), lease)
}

class SqliteControlWork extends SqliteUnitOfWork implements ControlWork {
  /** Entries of this batch are not in the table yet. */
  private readonly appended = new Set<string>()

  hasTransition(runId: string, id: string): boolean {
    if (this.appended.has(`${runId} ${id}`)) return true
    const sql = 'select 1 from journal where shard = 0 and run_id = ? and transition_id = ?'
    return this.batch.db.get(sql, [runId, id]) !== undefined
  }

  keyHolder(run: Keyed): string | null {
    return keyHolder(this.batch.db, run)
  }

  override write(before: Run, write: Rewrite, transition: string | null): void {
    super.write(before, write, transition)
    if (transition !== null && write.append.length > 0) this.appended.add(`${before.id} ${transition}`)
  }
}
