// Starting runs of several shards in one transaction: inside that of a user, and where there are idempotency keys. Runs with
// such a key take it first, in the key's own shard, and all of them before any row; then the rows are inserted, shard by
// shard. If there is an obstacle to a row, its key is free again. However many they are, that is a few statements for each
// shard.

import { foremost } from '../../../core/rules/insert-order.ts'
import { startInRounds } from '../../../core/rules/start.ts'
import type { NewRun, Started } from '../../../store.ts'
import type { Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import type { Claimant, IdempotencyQueries } from './idempotency.ts'
import type { ReadQueries } from '../read/read.ts'
import { byShard } from '../schema/shards.ts'
import type { StartChildren } from './locked-commit.ts'
import { createStartQueries, type StartQueries } from './start.ts'

/** The parts of a start. */
export interface StartingParts {
  readonly dialect: Dialect
  readonly startQueries: StartQueries
  readonly idempotencyQueries: IdempotencyQueries
  readonly readQueries: ReadQueries
}

/** How runs are inserted that others start, inside the transaction of those. */
export function childrenStarting(parts: Omit<StartingParts, 'starting'>): StartChildren {
  const as = createStartQueries(parts.dialect, 'commit')
  return async (x, runs) => {
    const inserted = new Set<string>()
    return { started: await startInOrder({ ...parts, startQueries: as }, x, runs, inserted), inserted }
  }
}

export async function startInOrder(
  parts: StartingParts,
  x: Execution,
  runs: readonly NewRun[],
  inserted = new Set<string>(),
): Promise<readonly Started[]> {
  if (parts.dialect.shards === 1) return parts.startQueries.start(x, 0, runs, inserted)
  // The first of two runs that want the same key has got it, or not, before the second asks. The run that has a key may be removed before
  // it is looked up: then its rival asks again.
  return startInRounds(runs, (open, answers) => startTogether(parts, x, foremost(open), { answers, inserted }))
}

/** Starts runs that do not conflict with one another. Those whose obstacle is not known yet get no answer. */
async function startTogether(
  { dialect, startQueries: rows, idempotencyQueries, readQueries }: StartingParts,
  x: Execution,
  runs: readonly NewRun[],
  { answers, inserted }: { readonly answers: Map<NewRun, Started>; readonly inserted: Set<string> },
): Promise<void> {
  const keyed = runs.filter(isKeyed)
  const taken = await idempotencyQueries.take(x, keyed)
  const isMine = (run: NewRun): boolean => run.idempotencyKey === null || taken.get(run.id)?.holder === run.id
  const shardsOf = (some: readonly NewRun[]) =>
    Array.from(byShard(dialect, some, ({ id }) => id)).sort(([one], [other]) => one - other)

  for (const [shard, some] of shardsOf(runs.filter(isMine))) {
    const started = await rows.start(x, shard, some, inserted)
    some.forEach((run, index) => answers.set(run, started[index] as Started))
  }
  // Nothing was inserted: there was an obstacle, or this is a start that was answered before its run was removed. A key that
  // the run of this id had before stays its own.
  const inVain = keyed.filter((run) => {
    const started = answers.get(run)
    if (started === undefined || taken.get(run.id)?.fresh !== true) return false
    return !started.created || started.run.deletedAt !== null
  })
  if (inVain.length > 0) await idempotencyQueries.free(x, inVain)

  const refused = runs.filter((run) => !isMine(run) && taken.get(run.id)?.holder !== undefined)
  // The id comes first, whichever run has the key.
  for (const [shard, some] of shardsOf(refused)) {
    for (const [run, twin] of await rows.lookForIds(x, shard, some)) answers.set(run, twin)
  }
  const left = refused.filter((run) => !answers.has(run))
  if (left.length === 0) return
  const holders = await readQueries.readRuns(
    x,
    left.map(({ id }) => taken.get(id)?.holder as string),
  )
  left.forEach((run, index) => {
    const found = holders[index]
    if (found !== undefined) answers.set(run, { created: false, taken: 'idempotency-key', run: found })
  })
}

function isKeyed(run: NewRun): run is NewRun & Claimant {
  return run.idempotencyKey !== null
}
