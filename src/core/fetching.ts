// Payloads that lie elsewhere. Where they are kept may be down for a while: that is waited for, never taken for an answer.

import type { Host } from './definition.ts'
import { isHoldfastError } from './error.ts'
import { growingPauses } from './pause.ts'

/** Asks again until the text is there, or until nobody wants it any more: then it rejects. */
export async function fetchPatiently(
  host: Host,
  first: Promise<string>,
  kept: string,
  isWanted: () => boolean,
): Promise<string> {
  const pause = growingPauses(host.ports)
  for (let text: string | Promise<string> = first; ; text = host.payloads.fetch(kept)) {
    try {
      return await text
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || !isWanted()) throw error
      await pause()
    }
  }
}
