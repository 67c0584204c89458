// Calls of functions that must be pure: those of a decider. While one runs, the engine refuses to be called: it would act on a
// decision that is not made yet, once for every time that it is tried.

import { HoldfastError } from '../errors/error.ts'

/** The pure function that is being called now, as its author writes it. Pure functions do not await, so there is one at most. */
let current: string | null = null

/** Calls a pure function: `what` is its name, as in `decide of "order"`. */
export function callPure<Result>(what: string, work: () => Result): Result {
  const before = current
  current = what
  try {
    return work()
  } finally {
    current = before
  }
}

/** Refuses a call of the engine from inside a pure function. `call` is how its author writes it: `holdfast.execute()`. */
export function assertNotPure(call: string): void {
  if (current === null) return
  throw new HoldfastError(
    'DECIDE_UNSAFE',
    `${call} was called inside ${current}, which is pure: it may run again, and what it decides may not be committed. ` +
      'Ask for it with the decision: .effect(), .start() or .signal().',
    { details: { call, inside: current } },
  )
}
