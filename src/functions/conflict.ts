// Transactions that were refused only because others were in the way. That is how a database keeps what is serializable apart:
// it was nobody's error, and the same again may succeed at once. So it is tried again whatever the policy of the step says,
// soon and at different times, and does not count against that policy.

import { randomFraction, type Random } from '../core/ports.ts'

/** After so many the policy decides: whoever meets others that often has work that should not go on at the same time. */
export const mostConflicts = 50

const longestMs = 500

/** SQLSTATE of a serialization failure, and of a deadlock. */
const states: ReadonlySet<unknown> = new Set(['40001', '40P01'])

/** Tells whether the database has said so, whatever a library has made of its error. */
export function isConflict(error: unknown): boolean {
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
