// What shows whether a topic is used: a page of its waits, with the runs of them that live, and its oldest broadcast. The runs that
// wait on it are not locked.

import { defaultPageLimits } from '../../../../core/model/chore.ts'
import type { Statement } from '../../dialect.ts'
import type { Row } from '../../execution.ts'
import { broadcastOf, waitOf } from '../../schema/rows.ts'
import type { LockedRows } from '../locked-rows.ts'
import type { loadingStatements } from './unit-of-work-statements.ts'

/** A request to one shard. */
export interface Placed {
  readonly shard: number
  readonly json: object | string
}

interface TopicLook {
  /** The topic; null if none is looked at. */
  readonly topic: string | null
  readonly shard: number
  readonly ask: (statement: Statement, requested: readonly Placed[]) => Promise<readonly Row[]>
  readonly placed: (runIds: readonly string[]) => readonly Placed[]
}

type Statements = Pick<
  ReturnType<typeof loadingStatements>[keyof ReturnType<typeof loadingStatements>],
  'topicWaits' | 'oldestBroadcasts' | 'liveRuns'
>

export async function lookTopicUse(
  statements: Statements,
  { topic, shard, ask, placed }: TopicLook,
): Promise<LockedRows['use']> {
  if (topic === null) return null
  const { topicWaits: most } = defaultPageLimits
  const [found, [oldest]] = await Promise.all([
    ask(statements.topicWaits, [{ shard, json: { topic, most: most + 1 } }]),
    ask(statements.oldestBroadcasts, [{ shard, json: topic }]),
  ])
  const waits = found.slice(0, most).map(waitOf)
  const living = await ask(statements.liveRuns, placed(waits.map(({ runId }) => runId)))
  const live = new Set(living.map(({ id }) => id))
  const use = {
    waits: waits.map((wait) => ({ wait, isLive: live.has(wait.runId) })),
    more: found.length > most,
    oldest: oldest === undefined ? undefined : broadcastOf(oldest),
  }
  return { topic, use }
}
