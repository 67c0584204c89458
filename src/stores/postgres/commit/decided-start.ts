// Starts of runs whose first input is decided, where more follows than entries and a time: children, an end, a snapshot. Their
// rows are inserted as waiting, and what follows is committed by the rules of a transition in the same transaction, for those
// that were created: a repetition finds that it was.

import type { Followed } from '../../../core/rules/start.ts'
import type { RunStart, Started } from '../../../store.ts'
import type { Dialect } from '../dialect.ts'
import type { ExchangeOptions } from '../exchange/exchange.ts'
import type { LockRequest } from '../exchange/lock-request.ts'
import type { Execution } from '../execution.ts'
import { byShard } from '../schema/shards.ts'
import { lockRequestOf, type LockedCommitQueries } from './locked-commit.ts'
import { isPlainlyDecided } from './new-runs.ts'
import { startInOrder, type StartingParts } from './ordered-start.ts'

export interface DecidedStartParts extends StartingParts {
  readonly lockedCommitQueries: LockedCommitQueries
}

/** The rows to lock in each shard. They stay known when the transaction begins again. */
export type StartLocks = Map<number, LockRequest>

/** Whether what follows from its first input needs the rules. Where rows are spread, no statement writes several tables. */
export function followsApart({ isSpread }: Pick<Dialect, 'isSpread'>, run: RunStart): boolean {
  return (run.decided ?? null) !== null && (isSpread || !isPlainlyDecided(run))
}

export async function startDecided(
  parts: DecidedStartParts,
  x: Execution,
  runs: readonly RunStart[],
  locks: StartLocks,
  how: ExchangeOptions = {},
): Promise<readonly Started[]> {
  const started = await startInOrder(parts, x, runs)
  const created = runs.filter((run, index) => started[index]?.created === true && followsApart(parts.dialect, run))
  // A run that comes twice in a batch was created once.
  const chosen = [...new Map(created.map((run) => [run.id, run])).values()]
  if (chosen.length === 0) return started
  const followed = new Map<string, Started>()
  for (const [shard, some] of byShard(parts.dialect, chosen, ({ id }) => id)) {
    const transitions = some.flatMap((run) => run.decided ?? [])
    const lockRequest = locks.get(shard) ?? lockRequestOf(transitions)
    locks.set(shard, lockRequest)
    const answers = await parts.lockedCommitQueries.follow({ x, shard, transitions, lockRequest, how })
    for (const [index, { id }] of some.entries()) {
      followed.set(id, { created: true, taken: null, ...(answers[index] as Followed) })
    }
  }
  return runs.map(({ id }, index) => {
    const answer = started[index] as Started
    return answer.created ? (followed.get(id) ?? answer) : answer
  })
}
