// The last calls of a worker that stops. A store that is unavailable must not keep a process from ending: other workers do
// the rest when the lease is over.

import { formatMs } from '../core/definition/duration.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { withTimeout } from '../core/runtime/backoff.ts'
import type { Ports } from '../core/runtime/ports.ts'

/** How long it waits for the answers to each of its two last calls, which give back its runs and end its session. */
const lastCallMs = 1_000

/** Waits for one of the last calls, but not for long. Undefined if it failed or was not answered, which is logged. */
export async function lastCall<Answer>(
  { clock, logger }: Ports,
  call: Promise<Answer>,
  failed: string,
): Promise<Answer | undefined> {
  try {
    return await withTimeout(clock, lastCallMs, call, () => {
      throw new HoldfastError('STORE_UNAVAILABLE', `The store has not answered for ${formatMs(lastCallMs)}.`)
    })
  } catch (error) {
    logger.warn(failed, { error })
    return undefined
  }
}
