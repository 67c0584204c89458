// The last calls of a worker that stops. A store that is away must not keep a process from ending: what a call did not do is
// done by other workers when the lease is over.

import { formatMs } from '../core/duration.ts'
import { HoldfastError } from '../core/error.ts'
import { within } from '../core/pause.ts'
import type { Ports } from '../core/ports.ts'

/** How long it waits for the answers to each of its two last calls, which give back what it held and end its session. */
const farewellMs = 1_000

/** Waits for one of the last calls, but not for long. Undefined if it failed or was not answered, which is logged. */
export async function farewell<Answer>(
  { clock, logger }: Ports,
  call: Promise<Answer>,
  failed: string,
): Promise<Answer | undefined> {
  try {
    return await within(clock, farewellMs, call, () => {
      throw new HoldfastError('STORE_UNAVAILABLE', `The store has not answered for ${formatMs(farewellMs)}.`)
    })
  } catch (error) {
    logger.warn(failed, { error })
    return undefined
  }
}
