// Starting runs one after the other in the order of the batch, in one transaction: inside that of a user, and where there are
// several shards and idempotency keys. There each takes its key first, in the key's own shard, then its row; if something is in the way of the row,
// the key is free again.

import { bug } from '../../core/error.ts'
import type { NewRun, Started } from '../../store.ts'
import type { Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import type { Idempotency } from './idempotency.ts'
import type { Reading } from './reading.ts'
import { shardOfRun } from './shards.ts'
import type { StartChildren } from './judging.ts'
import { starting, type Starting } from './starting.ts'

/** What a start is put together from. */
export interface StartingParts {
  readonly dialect: Dialect
  readonly starting: Starting
  readonly idempotency: Idempotency
  readonly reading: Reading
}

/** Whoever has a key may be removed before it is looked up; but not for ever. */
const mostRounds = 100

/** How runs are inserted that others start, inside the transaction of those. */
export function childrenStarting(parts: Omit<StartingParts, 'starting'>): StartChildren {
  const as = starting(parts.dialect, 'commit')
  return (x, runs) =>
    parts.dialect.shards === 1 ? as.start(x, 0, runs) : startInOrder({ ...parts, starting: as }, x, runs)
}

export async function startInOrder(
  { dialect, starting: rows, idempotency, reading }: StartingParts,
  x: Execution,
  runs: readonly NewRun[],
): Promise<readonly Started[]> {
  const startOne = async (run: NewRun): Promise<Started> => {
    const shard = shardOfRun(dialect, run.id) ?? 0
    const { id, type, idempotencyKey } = run
    if (idempotencyKey === null || dialect.shards === 1) return (await rows.start(x, shard, [run]))[0] as Started
    for (let round = 0; round < mostRounds; round += 1) {
      const { holder, fresh } = await idempotency.take(x, { id, type, idempotencyKey })
      if (holder === id) {
        const [started] = (await rows.start(x, shard, [run])) as [Started]
        // Nothing was inserted: something was in the way, or this is a start that was answered before its run was removed.
        // A key that the run of this id had before stays its own.
        const isInVain = !started.created || started.run.deletedAt !== null
        if (fresh && isInVain) await idempotency.free(x, [run])
        return started
      }
      if (holder === undefined) continue
      // The id comes first, whoever has the key.
      const twin = await rows.lookForId(x, shard, run)
      if (twin !== undefined) return twin
      const [found] = await reading.readRuns(x, [holder])
      if (found !== undefined) return { created: false, taken: 'idempotency-key', run: found }
    }
    throw bug('A start finds neither room nor what is in its way', { runId: id })
  }
  const answers: Started[] = []
  for (const run of runs) answers.push(await startOne(run))
  return answers
}
