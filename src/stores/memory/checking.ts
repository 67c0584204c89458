// The store looks at itself: whether what must be true of runs is true of all that it holds.

import { checkAll, checkFeed, report } from '../../core/invariants/check.ts'
import type { RunState } from '../../core/invariants/invariant.ts'
import type { Checked } from '../../store.ts'
import type { Feed } from './feed.ts'
import type { Row } from './row.ts'

export function checkStore(rows: Iterable<Row>, feed: Feed, now: number): readonly Checked[] {
  const states = Array.from(rows, stateOf)
  const changes = feed.read(0, Number.POSITIVE_INFINITY)
  return report([...checkAll(states, now), ...checkFeed(changes, states)])
}

function stateOf(row: Row): RunState {
  const kept = row.mailbox === null ? [] : [...row.mailbox.values()]
  const taken = kept.flatMap(({ message: { id, position }, takenBy }) =>
    takenBy === null ? [] : [{ id, position, takenBy }],
  )
  return { run: row.view(), entries: row.entries, messages: row.messages(), taken }
}
