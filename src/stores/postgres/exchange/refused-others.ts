// Runs that only receive a message from an operation on others, and whose rows a policy of row-level security refuses to
// change: a run that waits for an end, a child that is to be cancelled, a subscriber. The policy refuses the whole
// transaction then, and so the end of a run that it allows. So those runs are searched, and skipped as if another transaction
// had locked them: a chore comes back to them (`core/model/chore.ts`). They are tried again at intervals, because the policy
// may have changed.
//
// Only the row of a run is tried. A policy that refuses messages or entries of the journal may do so because of their
// content, and no run is to be skipped for that: then the whole transaction is refused, and its caller gets the error.

import { isOfOneRow } from '../../../core/errors/error.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Transactions } from '../execution.ts'
import { RefusedRuns } from './refused-runs.ts'
import { byShard } from '../schema/shards.ts'
import { rolledBack, withoutRefused } from '../commit/refused-items.ts'
import type { LockRequest } from './lock-request.ts'

/** So often the same is sent: behind those that are refused, a queue may have others that are, too. */
const mostRounds = 10

export interface RefusedOthers {
  /** Those of the runs that are wanted which are left out now. */
  among(lockRequest: LockRequest): ReadonlySet<string>
  /** Sends an exchange that wants this, again without those that are found to be refused. */
  spare<Answer>(db: Transactions, lockRequest: LockRequest, send: () => Promise<Answer>): Promise<Answer>
}

export interface RefusedOthersOptions {
  readonly monotonic: () => number
  /** Called when it is found out that a run is refused. */
  readonly onRefused: (runId: string, error: unknown) => void
}

export function refusedOthers(dialect: Dialect, { monotonic, onRefused }: RefusedOthersOptions): RefusedOthers {
  const { schema, skipLocked } = dialect
  const refused = new RefusedRuns(monotonic)
  // As a message to the run would change it.
  const probe = statement(
    [],
    `
    with locked as materialized (
      select run.id from ${schema}.runs as run where run.shard = $1::smallint and run.id = any(
        array(select value::uuid from json_array_elements_text($2::text::json) as one (value)))
      for no key update ${skipLocked})
    update ${schema}.runs as run set inbox = run.inbox + 1
    from locked where run.shard = $1::smallint and run.id = any(array(select id from locked)) and run.id = locked.id`,
  )

  const among = (lockRequest: LockRequest): ReadonlySet<string> =>
    new Set(refused.current.filter((id) => lockRequest.isOther(id)))

  /** False if none of them is refused that was not left out before. */
  async function find(db: Transactions, lockRequest: LockRequest): Promise<boolean> {
    const known = among(lockRequest)
    const others = [...lockRequest.runs].filter((id) => lockRequest.isOther(id) && !known.has(id))
    let isFound = false
    for (const [shard, ids] of byShard(dialect, others, (id) => id)) {
      const change = (some: readonly string[]): Promise<void> =>
        rolledBack(db, (x) => x.execute(probe, [shard, JSON.stringify(some)]))
      await withoutRefused(ids, change, (id, error) => {
        isFound = true
        if (refused.add(id)) onRefused(id, error)
      })
    }
    return isFound
  }

  return {
    among,
    async spare(db, lockRequest, send) {
      for (let rounds = 1; ; rounds += 1) {
        try {
          return await send()
        } catch (error) {
          if (!isOfOneRow(error) || rounds === mostRounds || !(await find(db, lockRequest))) throw error
        }
      }
    },
  }
}
