// Transactions that were refused only because others were in the way: it was nobody's error, and the same again may succeed at
// once. So it is tried again whatever the policy of the step says, soon and at different times, and does not count against that
// policy. There are two kinds:
//
//   serializable  that is how a database keeps such transactions apart, in whichever statement it finds out
//   the entry     somebody has locked the row of the run, as `using(tx).signal()` does until its transaction ends, when the entry
//                 of the step is to be written. The function is not to blame. The entry that tells of this attempt is written
//                 before the next one begins, and waits for that lock without holding anything

import { isHoldfastError } from '../../core/errors/error.ts'
import { randomFraction, type Random } from '../../core/runtime/ports.ts'

/** After so many the policy decides: whoever meets others that often has work that should not go on at the same time. */
export const mostConflicts = 50

const longestMs = 500

/** SQLSTATE of a serialization failure, and of a deadlock. */
const states: ReadonlySet<unknown> = new Set(['40001', '40P01'])
/** Somebody else had locked a row for longer than the statement was to wait. */
const locked = '55P03'

/** Tells whether others were in the way of a transaction, and it was not its function that they were in the way of. */
export function isConflict(error: unknown, isSerializable: boolean): boolean {
  return isMetByUs(error) || (isSerializable && isRefused(error))
}

/** Tells whether a statement of our own has met others: what the function's own meet is told in errors of its library. */
function isMetByUs(error: unknown): boolean {
  if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return false
  const state = error.details['sqlState']
  return state === locked || states.has(state)
}

/** Tells whether the database has said so, whatever a library has made of its error. */
function isRefused(error: unknown): boolean {
  let one: unknown = error
  for (let depth = 0; depth < 5 && typeof one === 'object' && one !== null; depth += 1) {
    const { code, cause, driverError } = one as { code?: unknown; cause?: unknown; driverError?: unknown }
    if (states.has(code)) return true
    one = cause ?? driverError
  }
  return false
}

/** Grows with each conflict, and is another for each who met. */
export function conflictDelay(conflicts: number, random: Random): number {
  return Math.round(randomFraction(random) * Math.min(5 * 2 ** Math.min(conflicts, 10), longestMs))
}
