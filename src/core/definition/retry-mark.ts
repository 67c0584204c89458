// How an error controls its own retry: never, or not before some time has passed. The mark is on the error that the author
// throws anyway, under a registered symbol: the error keeps its class and name, the mark does not show up when the error is
// printed or copied, and every copy of this package reads it.

import { messageOf } from '../errors/error.ts'
import { formatMs, toMs, type Duration } from './duration.ts'

export type RetryMark = { readonly kind: 'fatal' } | { readonly kind: 'retry-after'; readonly delayMs: number }

const key = Symbol.for('holdfast.retryMark')

/**
 * An error that is not retried, overriding the policy.
 *
 * Given an error, it marks and returns the same error, so `instanceof` and `name` still hold. An error that is frozen is
 * wrapped instead, as `cause`. Given a message, it takes a `cause` as every error does.
 *
 * @example
 * const charge = (card: { expired: boolean }) => {
 *   if (card.expired) throw fatal('The card has expired: another attempt cannot help.')
 * }
 */
export function fatal(message: string, options?: { readonly cause?: unknown }): Error
export function fatal(messageOrError: string | Error): Error
export function fatal(messageOrError: string | Error, options: { readonly cause?: unknown } = {}): Error {
  const isMessage = typeof messageOrError === 'string'
  return marked(isMessage ? new Error(messageOrError, options) : messageOrError, { kind: 'fatal' })
}

/**
 * An error that sets the delay before the next attempt, in place of the one that the policy would compute.
 *
 * The attempt still counts: after the policy's `maxAttempts` it is not retried.
 *
 * @example
 * const read = async (url: string) => {
 *   const response = await fetch(url)
 *   if (response.status === 429) throw retryAfter('30s', 'The service asked us to slow down.')
 *   return response.text()
 * }
 */
export function retryAfter(delay: Duration, messageOrError?: string | Error): Error {
  const delayMs = toMs(delay, 'The delay of retryAfter')
  return marked(messageOrError ?? `Not now: to be repeated in ${formatMs(delayMs)}.`, { kind: 'retry-after', delayMs })
}

/** The retry mark of a thrown value. Never throws, for any value. */
export function retryMarkOf(error: unknown): RetryMark | undefined {
  if ((typeof error !== 'object' && typeof error !== 'function') || error === null) return undefined
  try {
    const retryMark = (error as { readonly [key]?: unknown })[key]
    if (typeof retryMark !== 'object' || retryMark === null) return undefined
    const { kind, delayMs } = retryMark as { readonly kind?: unknown; readonly delayMs?: unknown }
    if (kind === 'fatal') return { kind }
    if (kind !== 'retry-after' || typeof delayMs !== 'number') return undefined
    // Another copy of this package, or user code, may have set it.
    return Number.isSafeInteger(delayMs) && delayMs >= 0 ? { kind, delayMs } : undefined
  } catch {
    return undefined
  }
}

function marked(messageOrError: string | Error, retryMark: RetryMark): Error {
  if (typeof messageOrError === 'string') return mark(new Error(messageOrError), retryMark)
  try {
    return mark(messageOrError, retryMark)
  } catch {
    return mark(wrapped(messageOrError), retryMark)
  }
}

/** Throws if the error cannot be written to. A later mark replaces an earlier one. */
function mark(error: Error, retryMark: RetryMark): Error {
  return Object.defineProperty(error, key, { value: retryMark, enumerable: false, configurable: true })
}

/** For values that cannot be marked: a frozen error, or, from untyped code, a value that is not an object. */
function wrapped(cause: unknown): Error {
  const text = messageOf(cause)
  const error = new Error(text, { cause })
  const name = cause instanceof Error ? cause.name : error.name
  return Object.defineProperty(error, 'name', { value: name, enumerable: false, configurable: true, writable: true })
}
