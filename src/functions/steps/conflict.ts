// Conflicts: transactions that were refused only because of other transactions. The function made no error, and the same
// attempt may succeed at once. So it is tried again regardless of the retry policy of the step, soon and with jitter, and
// does not count against that policy. There are two kinds:
//
//   serializable  a serialization failure or a deadlock, which the database may report in any statement
//   the entry     another transaction has locked the row of the run when the entry of the step is to be written, as
//                 `using(tx).signal()` does until its transaction ends. The function is not to blame. The entry of the failed
//                 attempt is written before the next one begins, and waits for that lock without holding any

import { isHoldfastError } from '../../core/errors/error.ts'
import { randomFraction, type Random } from '../../core/runtime/ports.ts'

/** After so many the policy decides: a step that conflicts that often should not run concurrently with its competitors. */
export const mostConflicts = 50

const longestMs = 500

/** SQLSTATE of a serialization failure, and of a deadlock. */
const states: ReadonlySet<unknown> = new Set(['40001', '40P01'])
/** Another transaction had locked a row for longer than the statement was to wait. */
const locked = '55P03'

/** Whether a transaction was refused because of other transactions, and not because of its function. */
export function isConflict(error: unknown, isSerializable: boolean): boolean {
  return isMetByUs(error) || (isSerializable && isRefused(error))
}

/**
 * Whether a statement of the engine met a conflict: those of the function's own statements are errors of its library.
 */
function isMetByUs(error: unknown): boolean {
  if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return false
  const state = error.details['sqlState']
  return state === locked || states.has(state)
}

/** Whether the database reported a conflict, also if a library has wrapped its error. */
function isRefused(error: unknown): boolean {
  let one: unknown = error
  for (let depth = 0; depth < 5 && typeof one === 'object' && one !== null; depth += 1) {
    const { code, cause, driverError } = one as { code?: unknown; cause?: unknown; driverError?: unknown }
    if (states.has(code)) return true
    one = cause ?? driverError
  }
  return false
}

/** Grows with each conflict, with jitter, so that competitors retry at different times. */
export function conflictDelay(conflicts: number, random: Random): number {
  return Math.round(randomFraction(random) * Math.min(5 * 2 ** Math.min(conflicts, 10), longestMs))
}
