// The effect of a transition on the row of its run. Stores that keep rows as such write the result.

import { isTerminal, type Readiness, type Run } from '../model/run.ts'
import { undoAfter, type NextStatus, type Transition } from '../model/transition.ts'
import { dueAt } from '../model/due.ts'

/** The columns that a transition writes while the lease stays. */
export type AdvanceColumns = Pick<
  Run,
  'seq' | 'crashes' | 'updatedAt' | 'keyId' | 'undo' | 'timeoutAt' | 'expiresAt' | 'type' | 'version' | 'feed' | 'base'
>

export function advanceColumns(row: Run, transition: Transition, now: number): AdvanceColumns {
  const { guard, append, undo, continues, keyId = null, base = null } = transition
  const seq = row.seq + append.length
  const isUnbound = undo === 'due'
  const { type, version, feed } = continues ?? row
  return {
    seq,
    // Only a holder shows that the run does not crash its holders.
    crashes: guard.lease === null ? row.crashes : 0,
    updatedAt: now,
    keyId: keyId ?? row.keyId,
    undo: continues === null ? undoAfter(row.undo, undo) : 'none',
    timeoutAt: isUnbound ? null : row.timeoutAt,
    expiresAt: isUnbound ? null : row.expiresAt,
    type,
    version,
    feed,
    base: continues === null ? (base ?? row.base) : seq,
  }
}

/** The row after a transition with which the lease stays. */
export function advanced<Row extends Run>(row: Row, transition: Transition, now: number): Row {
  return { ...row, ...advanceColumns(row, transition, now) }
}

/** The columns that a transition writes when the lease ends with it. */
export type LeaveColumns = Pick<
  Run,
  'status' | 'readiness' | 'due' | 'session' | 'deadline' | 'wakeNames' | 'controlRequest' | 'timeoutAt' | 'endedAt'
>

export function leaveColumns(row: Run, { status, due, parkIf }: Transition, now: number): LeaveColumns {
  const next = status ?? 'pending'
  const [readiness, dueTime] = row.deletedAt === null ? restOf(next, dueAt(due, now), now) : notScheduled
  const isCancelling = next === 'cancelling'
  return {
    status: next,
    readiness,
    due: dueTime,
    session: null,
    deadline: null,
    // Without a lease the run stays parked as it was.
    wakeNames: parkIf === null && next === 'waiting' ? row.wakeNames : (parkIf?.wakeNames ?? null),
    // The control request of a cancellation stays until that is over, and a cancellation has no bound on its time.
    controlRequest: isCancelling ? row.controlRequest : null,
    timeoutAt: isCancelling ? null : row.timeoutAt,
    endedAt: isTerminal(next) ? now : row.endedAt,
  }
}

/** The row when the lease ends with the transition. */
export function left<Row extends Run>(row: Row, transition: Transition, now: number): Row {
  return { ...row, ...leaveColumns(row, transition, now) }
}

const notScheduled = ['idle', null] as const

/** The schedule of a run that has lost its holder. */
export function restOf(status: NextStatus, due: number | null, now: number): readonly [Readiness, number | null] {
  const at = status === 'pending' || status === 'cancelling' ? (due ?? now) : status === 'waiting' ? due : null
  if (at === null) return notScheduled
  return [at > now ? 'timed' : 'ready', at]
}
