// The usual transitions of a batch as columns, without their entries, and without what all of a batch have in common.

import { isTerminal } from '../../../core/model/run.ts'
import { wakeNamesText } from '../../../core/rows/wake-names.ts'
import { ArrayText, rowFrom, rowsFrom } from '../array-text.ts'
import type { Value } from '../execution.ts'
import type { HeldTransition } from './usual-transition.ts'

const columns = {
  id: 'uuid',
  seq: 'integer',
  token: 'bigint',
  more: 'integer',
  status: 'text',
  inbox: 'integer',
  ends: 'boolean',
  wake_names: 'text',
  due_at: 'bigint',
  due_after: 'bigint',
}

/** How many values the moves of a batch take. */
export const moveValues = Object.keys(columns).length

/** The rows of moves whose first value has that place; `isOne`: there is one. */
export function movesFrom(first: number, isOne: boolean): string {
  return `${(isOne ? rowFrom : rowsFrom)(columns, first)} as given`
}

/** What `movesFrom` reads. */
export function valuesOfMoves(transitions: readonly HeldTransition[], isOne: boolean): readonly Value[] {
  const [id, seq, token, more] = [new ArrayText(), new ArrayText(), new ArrayText(), new ArrayText()]
  const [status, inbox, ends, wakeNames] = [new ArrayText(), new ArrayText(), new ArrayText(), new ArrayText()]
  const [dueAt, dueAfter] = [new ArrayText(), new ArrayText()]
  for (const { runId, guard, append, status: next, due, parkIf, emptyAt } of transitions) {
    id.add(runId)
    seq.add(guard.seq)
    token.add(guard.lease.token)
    more.add(append.length)
    status.add(next)
    const isEnd = next !== null && isTerminal(next)
    // A run that never got a message has none left to read, in any way of ending.
    inbox.add(isEnd ? (emptyAt ?? 0) : next === null ? null : parkIf?.inbox)
    ends.add(isEnd ? 'true' : null)
    wakeNames.add(wakeNamesText(parkIf?.wakeNames, guard.lease.token))
    dueAt.add(next === null ? null : due?.at)
    dueAfter.add(next === null ? null : due?.afterMs)
  }
  const arrays = [id, seq, token, more, status, inbox, ends, wakeNames, dueAt, dueAfter]
  return arrays.map((array) => (isOne ? array.last : String(array)))
}
