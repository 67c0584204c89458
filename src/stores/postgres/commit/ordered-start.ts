// Starting runs of several shards in one transaction: inside that of a user, and where there are idempotency keys. Those with
// such a key take it first, in the key's own shard, and all of them before any row; then the rows are inserted, shard by
// shard. If something is in the way of a row, its key is free again. However many they are, that is a few statements for each
// shard.

import { bug } from '../../../core/errors/error.ts'
import type { NewRun, Started } from '../../../store.ts'
import type { Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import type { Claimant, IdempotencyQueries } from './idempotency.ts'
import type { ReadQueries } from '../read/read.ts'
import { byShard } from '../schema/shards.ts'
import type { StartChildren } from './locked-commit.ts'
import { foremost } from '../../insert-order.ts'
import { createStartQueries, type StartQueries } from './start.ts'

/** What a start is put together from. */
export interface StartingParts {
  readonly dialect: Dialect
  readonly startQueries: StartQueries
  readonly idempotencyQueries: IdempotencyQueries
  readonly readQueries: ReadQueries
}

/** Whoever has a key may be removed before it is looked up; but not for ever. */
const mostRounds = 100

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
  const answers = new Map<NewRun, Started>()
  let open = runs
  for (let round = 0; open.length > 0; round += 1) {
    if (round === mostRounds) throw bug('A start finds neither room nor what is in its way', { runs: open.length })
    // Of two that want the same the first has got it, or not, before the second asks.
    await startTogether(parts, x, foremost(open), { answers, inserted })
    open = open.filter((run) => !answers.has(run))
  }
  return runs.map((run) => answers.get(run) as Started)
}

/** Starts runs that are not in the way of one another. Those of which nobody knows yet what is in their way get no answer. */
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
  // Nothing was inserted: something was in the way, or this is a start that was answered before its run was removed.
  // A key that the run of this id had before stays its own.
  const inVain = keyed.filter((run) => {
    const started = answers.get(run)
    if (started === undefined || taken.get(run.id)?.fresh !== true) return false
    return !started.created || started.run.deletedAt !== null
  })
  if (inVain.length > 0) await idempotencyQueries.free(x, inVain)

  const refused = runs.filter((run) => !isMine(run) && taken.get(run.id)?.holder !== undefined)
  // The id comes first, whoever has the key.
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
