// The store looks at itself: whether what must be true of runs is true of all that it holds.

import { checkAll, checkExchange, checkFeed, report } from '../../core/invariants/check.ts'
import type { RunState } from '../../core/invariants/invariant.ts'
import type { InvariantCheck } from '../../store.ts'
import type { Row } from './tables/row.ts'
import type { Tables } from './tables/tables.ts'

export function checkStore({ rows, feed, topics }: Tables, now: number): readonly InvariantCheck[] {
  const states = Array.from(rows.values(), stateOf)
  const changes = feed.read(0, Number.POSITIVE_INFINITY)
  const between = { waits: topics.allWaits(), broadcasts: topics.allBroadcasts(), chores: topics.allChores() }
  const exchanged = checkExchange(between, states, now)
  return report([...checkAll(states, now), ...exchanged, ...checkFeed(changes, states)])
}

function stateOf(row: Row): RunState {
  return { run: row.view(), entries: row.entries, messages: row.messages(), taken: row.taken() }
}
