// The error of a store that gave work up because it took too long. Unlike with a store that cannot be reached, the work
// itself may be the cause: the same request may take as long every time.

import { HoldfastError, isHoldfastError } from './error.ts'

/** The SQLSTATE of a statement that was cancelled, as it is when it takes longer than the statement timeout. */
const cancelled = '57014'

export function isTooSlow(error: unknown): boolean {
  return isHoldfastError(error, 'STORE_UNAVAILABLE') && error.details['sqlState'] === cancelled
}

/** Such an error, for stores and tests without a database that raises it. */
export function tooSlow(message: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { sqlState: cancelled } })
}
