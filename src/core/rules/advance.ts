// The effect of a holder's transition on the row of its run. Stores that keep rows as such write the result.

import { isTerminal, type Readiness, type Run } from '../model/run.ts'
import { undoAfter, type NextStatus, type Transition } from '../model/transition.ts'
import { dueAt } from '../model/due.ts'

/** The row after a transition with which the lease stays. */
export function advanced<Row extends Run>(
  row: Row,
  { append, undo, continues, keyId = null }: Transition,
  now: number,
): Row {
  const seq = row.seq + append.length
  const moved = { ...row, seq, crashes: 0, updatedAt: now, undo: undoAfter(row.undo, undo) }
  const unbound = undo === 'due' ? { timeoutAt: null, expiresAt: null } : {}
  const anew = continues === null ? {} : { ...continues, base: seq, undo: 'none' as const }
  return { ...moved, ...unbound, ...anew, keyId: keyId ?? row.keyId }
}

/** The row when the lease ends with the transition. */
export function left<Row extends Run>(row: Row, { status, due, parkIf }: Transition, now: number): Row {
  const next = status ?? 'pending'
  const [readiness, dueTime] = row.deletedAt === null ? restOf(next, dueAt(due, now), now) : (['idle', null] as const)
  const wakeNames = parkIf?.wakeNames ?? null
  const free = { ...row, status: next, readiness, due: dueTime, session: null, deadline: null, wakeNames }
  // The control request of a cancellation stays until that is over, and a cancellation has no bound on its time.
  if (next === 'cancelling') return { ...free, timeoutAt: null }
  return { ...free, controlRequest: null, endedAt: isTerminal(next) ? now : null }
}

/** The schedule of a run that has lost its holder. */
export function restOf(status: NextStatus, due: number | null, now: number): readonly [Readiness, number | null] {
  const at = status === 'pending' || status === 'cancelling' ? (due ?? now) : status === 'waiting' ? due : null
  if (at === null) return ['idle', null]
  return [at > now ? 'timed' : 'ready', at]
}
