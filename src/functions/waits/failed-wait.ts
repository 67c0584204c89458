// Waits that cannot be made. A wait, like the promise of a step, never throws where it is made: it rejects when it is awaited,
// and so does a race that it takes part in. It takes no identity, so it shifts none.

import type { WaitFrame } from './wait.ts'

const nothing = (): void => undefined

/** The calls of a wait that rejects with this error. `promise` makes the promise of a call, whose body is warned if it never awaits it. */
export function failedWait(error: unknown, promise: (make: () => Promise<never>) => Promise<never>): WaitFrame {
  const rejected = promise(() => Promise.reject(error))
  return {
    failure: { error },
    refusal: () => null,
    made: nothing,
    offered: nothing,
    taken: nothing,
    // It has no case that begins by itself.
    begin: () => {
      throw error
    },
    await: () => rejected,
  }
}
