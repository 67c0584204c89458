// Starts of runs whose first input is decided, where more follows than entries and a time: children, an end, a snapshot. Their
// rows are inserted as waiting, and what follows is committed by the rules of a transition in the same transaction, for those
// that were created: a repetition finds that it was.

import { isPlainlyDecided } from '../../../core/deciding/plainly-decided.ts'
import type { Followed } from '../../../core/rules/start.ts'
import type { RunStart, Started } from '../../../store.ts'
import type { Dialect } from '../dialect.ts'
import type { ExchangeOptions } from '../exchange/exchange.ts'
import type { LockRequest } from '../exchange/lock-request.ts'
import type { Execution } from '../execution.ts'
import { byShard } from '../schema/shards.ts'
import { lockRequestOf, type LockedCommitQueries } from '../commit/locked-commit.ts'
import { startInOrder, type StartingParts } from './ordered-start.ts'

export interface DecidedStartParts extends StartingParts {
  readonly lockedCommitQueries: LockedCommitQueries
}

/** The rows to lock, by what is committed together. They stay known when the transaction begins again. */
export type StartLocks = Map<string, LockRequest>

/** Whether what follows from its first input needs the rules. Where rows are spread, no statement writes several tables. */
export function followsApart({ isSpread }: Pick<Dialect, 'isSpread'>, run: RunStart): boolean {
  return (run.decided ?? null) !== null && (isSpread || !isPlainlyDecided(run))
}

export function startDecided(
  parts: DecidedStartParts,
  x: Execution,
  runs: readonly RunStart[],
  locks: StartLocks,
  how: ExchangeOptions = {},
): Promise<readonly Started[]> {
  const isApart = (run: RunStart): boolean => followsApart(parts.dialect, run)
  if (!runs.some(isApart)) return startInOrder(parts, x, runs)
  const follow = async (some: readonly RunStart[], answers: Map<RunStart, Started>): Promise<void> => {
    const created = some.filter((run) => isApart(run) && answers.get(run)?.created === true)
    for (const [shard, ofShard] of byShard(parts.dialect, created, ({ id }) => id)) {
      const transitions = ofShard.flatMap((run) => run.decided ?? [])
      const place = `${shard} ${transitions.map(({ id }) => id).join(' ')}`
      const lockRequest = locks.get(place) ?? lockRequestOf(transitions)
      locks.set(place, lockRequest)
      const followed = await parts.lockedCommitQueries.follow({ x, shard, transitions, lockRequest, how })
      for (const [index, run] of ofShard.entries()) {
        answers.set(run, { created: true, taken: null, ...(followed[index] as Followed) })
      }
    }
  }
  return startInOrder(parts, x, runs, { follow })
}
