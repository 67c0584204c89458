// Errors that say: this process cannot go on with a run, because it lacks something that another process may have. The worker
// gives such a run back, less and less often, and does not fail or pause it because of this error.

import { HoldfastError, isHoldfastError, type ErrorCode } from './error.ts'

/** A brand, like that of the class: another copy of the package recognises it. */
const mark = Symbol.for('holdfast.leftToOthers')

export function leftToOthers(
  code: ErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>>,
): HoldfastError {
  const error = new HoldfastError(code, message, { details })
  Object.defineProperty(error, mark, { value: true })
  return error
}

export function isLeftToOthers(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && mark in error
}
