// Starting runs of several shards, or with keys, in one transaction. Runs with keys take them first, each in the key's own
// shard, and all of them before any row; then the rows are inserted, shard by shard. A run that is not inserted frees the keys
// that it took. However many they are, that is a few statements for each shard.

import { foremost } from '../../../core/rules/insert-order.ts'
import { obstacleTo, startInRounds, type ObstacleWork, type Twin } from '../../../core/rules/start.ts'
import type { RunStart, Started } from '../../../store.ts'
import type { Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import { createKeyQueries, isKeyed, type KeyQueries, type Taken } from '../commit/keys.ts'
import type { ReadQueries } from '../read/read.ts'
import { notVisibleYet } from '../connection/sql-state.ts'
import { byShard } from '../schema/shards.ts'
import type { StartChildren } from '../commit/locked-commit.ts'
import { createStartQueries, type StartQueries } from './start.ts'

/** The parts of a start. */
export interface StartingParts {
  readonly dialect: Dialect
  readonly startQueries: StartQueries
  readonly keyQueries: KeyQueries
  readonly readQueries: ReadQueries
}

/** How runs are inserted that others start, inside the transaction of those. */
export function childrenStarting(parts: Omit<StartingParts, 'starting'>): StartChildren {
  const startQueries = createStartQueries(parts.dialect, 'commit')
  const keyQueries = createKeyQueries(parts.dialect, 'commit')
  return async (x, runs) => {
    const inserted = new Set<string>()
    return { started: await startInOrder({ ...parts, startQueries, keyQueries }, x, runs, { inserted }), inserted }
  }
}

/** What follows from the first inputs of some that are answered; it may change their answers. */
export type FollowStarts = (runs: readonly RunStart[], answers: Map<RunStart, Started>) => Promise<void>

export async function startInOrder(
  parts: StartingParts,
  x: Execution,
  runs: readonly RunStart[],
  { inserted = new Set<string>(), follow }: { readonly inserted?: Set<string>; readonly follow?: FollowStarts } = {},
): Promise<readonly Started[]> {
  if (parts.dialect.shards === 1 && follow === undefined && !runs.some(isKeyed)) {
    return parts.startQueries.start(x, 0, runs, inserted)
  }
  // The first of two runs that want the same key has got it, or not, before the second asks. The run that has a key may end,
  // or be removed, before it is looked up: then its rival asks again.
  return startInRounds(runs, async (open, answers) => {
    const chosen = new Set(foremost(open))
    // In the order of the batch, which is that of the feed.
    const together = open.filter((run) => chosen.has(run))
    await startTogether(parts, x, together, { answers, inserted })
    // Before the next round: a run that is over by then has left its key to the next.
    await follow?.(together, answers)
  })
}

/** Starts runs that do not conflict with one another. Those whose obstacle is not known yet get no answer. */
async function startTogether(
  { dialect, startQueries: rows, keyQueries, readQueries }: StartingParts,
  x: Execution,
  runs: readonly RunStart[],
  { answers, inserted }: { readonly answers: Map<RunStart, Started>; readonly inserted: Set<string> },
): Promise<void> {
  const keyed = runs.filter(isKeyed)
  const taken = keyed.length === 0 ? new Map<string, Taken>() : await keyQueries.take(x, keyed)
  const isWhole = (run: RunStart): boolean => taken.get(run.id)?.isWhole ?? true
  const shardsOf = (some: readonly RunStart[]) =>
    Array.from(byShard(dialect, some, ({ id }) => id)).sort(([one], [other]) => one - other)

  for (const [shard, some] of shardsOf(runs.filter(isWhole))) {
    const started = await rows.start(x, shard, some, inserted)
    some.forEach((run, index) => answers.set(run, started[index] as Started))
  }
  // Nothing was inserted: there was an obstacle, or this is a start that was answered before its run ended. Keys that the run
  // of this id had before stay its own.
  const inVain = keyed.flatMap(({ id }) => (inserted.has(id) ? [] : (taken.get(id)?.fresh ?? [])))
  if (inVain.length > 0) await keyQueries.free(x, inVain)

  const refused = runs.filter((run) => !isWhole(run))
  const twins = new Map<RunStart, Twin>()
  for (const [shard, some] of shardsOf(refused)) {
    const found = await rows.lookForTwins(x, shard, some)
    found.forEach((twin, index) => twin !== undefined && twins.set(some[index] as RunStart, twin))
  }
  // A run of the same id comes before those that have the keys, which are then not looked up.
  const left = refused.filter((run) => !twins.has(run))
  const holderIds = [...new Set(left.flatMap(({ id }) => holdersOf(taken.get(id))))]
  const found = holderIds.length === 0 ? [] : await readQueries.readRuns(x, holderIds)
  const holders = new Map(holderIds.map((id, index) => [id, found[index]]))
  const work: ObstacleWork = {
    twin: (run) => twins.get(run),
    sameStart: ({ id }) => holders.get(taken.get(id)?.idempotencyHolder ?? ''),
    keyRival: ({ id }) => {
      const rival = holders.get(taken.get(id)?.keyHolder ?? '')
      return rival?.endedAt === null ? rival : undefined
    },
  }
  for (const run of refused) {
    const answer = obstacleTo(work, run)
    if (answer !== null) answers.set(run, answer)
    // Its key was visible, on another machine, before the run is: not a rival that was removed just now.
    else if (dialect.isSpread) throw notVisibleYet('The run that has an idempotency key was not found')
  }
}

function holdersOf(taken: Taken | undefined): readonly string[] {
  return [taken?.idempotencyHolder, taken?.keyHolder].filter((id) => id !== undefined)
}
