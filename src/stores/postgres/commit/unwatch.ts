// Giving up waits in the statement that commits. The lock of the run is enough: its waits begin and end by its own
// transitions, one after the other. A concurrent sender to the topic may still find the wait: then the run has one more
// message, as if that had come a moment earlier.

import type { Transition } from '../../../core/model/transition.ts'
import { targetOf } from '../../../core/model/wait-target.ts'
import type { Dialect } from '../dialect.ts'
import { shardOfWait } from '../schema/shards.ts'

/** At most this many waits in a list whose keys can be looked up in all their combinations. */
export const mostCombinations = 1_000

/** Added to the statement that has `moved` runs: those give up the waits of the value at that place. */
export function unwatchSql({ schema }: Pick<Dialect, 'schema'>, at: number): string {
  // Looked up by keys, regardless of the row estimates of a cached plan.
  const among = (column: string): string => `any(array(select ${column} from gone))`
  return `,
    gone as materialized (
      select gone.* from json_to_recordset($${at}::text::json) as gone (w smallint, kind text, target text, r uuid)
        join moved on moved.id = gone.r),
    unwatched as (
      delete from ${schema}.waits as wait using gone
      where wait.shard = ${among('w')} and wait.kind = ${among('kind')} and wait.target = ${among('target')}
        and wait.run_id = ${among('r')} and wait.effect = 'notify' and wait.shard = gone.w and wait.kind = gone.kind
        and wait.target = gone.target and wait.run_id = gone.r)`
}

/** A wait that a run gives up, as JSON: the shard and the key of the wait. */
interface Unwatch {
  readonly w: number
  readonly kind: string
  readonly target: string
  readonly r: string
}

export function unwatchesOf(dialect: Dialect, transitions: readonly Transition[]): readonly Unwatch[] {
  return transitions.flatMap(({ runId: r, outbound }) =>
    (outbound?.unwatches ?? []).flatMap((watched) => {
      const wait = { kind: watched.kind, target: targetOf(watched) }
      const w = shardOfWait(dialect, wait)
      return w === undefined ? [] : [{ w, ...wait, r }]
    }),
  )
}

/** Without those that give up waits, if together they give up more than can be looked up so. */
export function withoutMany<One extends Transition>(transitions: readonly One[]): readonly One[] {
  const targets = new Set<string>()
  let runs = 0
  for (const { outbound } of transitions) {
    for (const watched of outbound?.unwatches ?? []) targets.add(targetOf(watched))
    if (isLeaving(outbound)) runs += 1
  }
  if (targets.size * runs <= mostCombinations) return transitions
  return transitions.filter(({ outbound }) => !isLeaving(outbound))
}

function isLeaving(outbound: Transition['outbound']): boolean {
  return (outbound?.unwatches.length ?? 0) > 0
}
