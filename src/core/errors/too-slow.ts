// What a store says of work that it gave up because that took too long. Unlike a store that cannot be reached, the work itself
// may be the cause: the same again may take as long again, for ever.

import { HoldfastError, isHoldfastError } from './error.ts'

/** The SQLSTATE of a statement that was cancelled, as it is when it takes longer than the statement timeout. */
const cancelled = '57014'

export function isTooSlow(error: unknown): boolean {
  return isHoldfastError(error, 'STORE_UNAVAILABLE') && error.details['sqlState'] === cancelled
}

/** Such an error, for stores and tests that have no database to say so. */
export function tooSlow(message: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { sqlState: cancelled } })
}
