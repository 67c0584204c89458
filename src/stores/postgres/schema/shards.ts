// Which rows are in which shard. A statement names one shard; a query of many shards is sent as one statement for each, all
// at once.

import { type Chore, partiesOf } from '../../../core/model/chore.ts'
import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import { isRunId, shardFor, shardOf } from '../../../core/model/run-id.ts'
import type { Dialect, Statement } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'

/** The shard of a run; undefined if there can be no run of that id. Ids that users make have any bits there. */
export function shardOfRun({ shards }: Pick<Dialect, 'shards'>, runId: string): number | undefined {
  if (!isRunId(runId)) return undefined
  return shards === 1 ? 0 : shardOf(runId) % shards
}

/** The shard of the waits on that target; undefined if there can be none, because there can be no such run. */
export function shardOfWait(
  dialect: Pick<Dialect, 'shards'>,
  { kind, target }: Pick<WaitRow, 'kind' | 'target'>,
): number | undefined {
  return kind === 'topic' ? shardFor(target, dialect.shards) : shardOfRun(dialect, target)
}

/** The shard in which a chore is written; undefined if there can be no such run. */
export function shardOfChore(
  dialect: Pick<Dialect, 'shards'>,
  { kind, target }: Pick<Chore, 'kind' | 'target'>,
): number | undefined {
  const isOfTopic = kind === 'topic' || kind === 'late'
  if (kind === 'send') return shardOfRun(dialect, partiesOf(target).senderId)
  return isOfTopic ? shardFor(target, dialect.shards) : shardOfRun(dialect, target)
}

/** Items about runs that may exist, by their shard, each in the order given. */
export function byShard<One>(
  dialect: Pick<Dialect, 'shards'>,
  all: Iterable<One>,
  runIdOf: (one: One) => string,
): ReadonlyMap<number, readonly One[]> {
  const found = new Map<number, One[]>()
  for (const one of all) {
    const shard = shardOfRun(dialect, runIdOf(one))
    if (shard === undefined) continue
    const together = found.get(shard)
    if (together === undefined) found.set(shard, [one])
    else together.push(one)
  }
  return found
}

/** Asks each shard for its own, and answers all rows. */
export async function askShards<One>(
  x: Execution,
  statement: Statement,
  requested: ReadonlyMap<number, readonly One[]>,
  jsonOf: (some: readonly One[]) => unknown,
): Promise<readonly Row[]> {
  const answers = await Promise.all(
    Array.from(requested, ([shard, some]) => x.execute(statement, [shard, JSON.stringify(jsonOf(some))])),
  )
  return answers.length === 1 ? (answers[0] as readonly Row[]) : answers.flat()
}

export function everyShard({ shards }: Pick<Dialect, 'shards'>): readonly number[] {
  return Array.from({ length: shards }, (_, shard) => shard)
}
