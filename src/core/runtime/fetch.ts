// Payloads that lie elsewhere. Where they are kept may be down for a while: that is waited for, never taken for an answer.

import type { Host } from '../definition/definition.ts'
import { isHoldfastError } from '../errors/error.ts'
import { createBackoff, type BackoffBounds } from './backoff.ts'
import type { Place } from '../payload/place.ts'

/** A port whose `put` answers with a reference that it does not accept keeps an object for each try. */
const keepPauses: BackoffBounds = { firstMs: 10, longestMs: 10_000 }

/** Asks again until the text is there, or until it is no longer wanted: then it rejects. */
export async function fetchPatiently(
  host: Pick<Host, 'ports' | 'payloads'>,
  first: Promise<string>,
  kept: string,
  shouldRetry: () => boolean,
): Promise<string> {
  const pause = createBackoff(host.ports)
  for (let text: string | Promise<string> = first; ; text = host.payloads.fetch(kept)) {
    try {
      return await text
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || !shouldRetry()) throw error
      await pause()
    }
  }
}

/**
 * Tries again until the text is kept where it belongs, and logs once that it could not be; rejects if it is no longer wanted.
 */
export async function keepPatiently(
  host: Pick<Host, 'ports' | 'payloads'>,
  text: string,
  place: Place,
  shouldRetry: () => boolean,
): Promise<string> {
  const pause = createBackoff(host.ports, keepPauses)
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await host.payloads.keep(text, place)
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || !shouldRetry()) throw error
      if (isFirst) host.ports.logger.error(error.message, { run: place.runId, error })
      await pause()
      if (!shouldRetry()) throw error
    }
  }
}
