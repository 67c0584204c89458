// The one option that every call which waits for the store has: a signal that ends the waiting.

import { HoldfastError } from '../core/errors/error.ts'
import { checkOptions, shown } from '../core/text/suggest.ts'
import type { Store } from '../store.ts'

export interface AbortOption {
  /**
   * Ends the waiting for the store: the call is rejected with STORE_UNAVAILABLE as soon as the signal fires. A request that was
   * sent by then may take effect all the same, and `details.sent` says whether it was; one that was not sent is never sent.
   * @default the storage timeout of the store alone ends it
   */
  readonly abortSignal?: AbortSignal
}

/** Throws INVALID_OPTION unless it is an AbortSignal. */
export function checkAbortSignal(given: unknown): AbortSignal | undefined {
  if (given === undefined) return undefined
  const isSignal = typeof given === 'object' && given !== null && 'aborted' in given && 'addEventListener' in given
  if (isSignal) return given as AbortSignal
  throw new HoldfastError(
    'INVALID_OPTION',
    `abortSignal must be an AbortSignal, such as AbortSignal.timeout(500). Got ${shown(given)}.`,
  )
}

/**
 * Settles as the work does, or rejects with STORE_UNAVAILABLE as soon as the signal fires. If it has fired already, the work is
 * not begun. Work of several parts checks between them with `assertNotAborted`.
 */
export async function abortable<Value>(where: string, given: unknown, work: () => Promise<Value>): Promise<Value> {
  const signal = checkAbortSignal(given)
  if (signal === undefined) return work()
  assertNotAborted(where, signal, false)
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(unwanted(where, signal, true))
    signal.addEventListener('abort', aborted, { once: true })
    // Work that throws before its first await must end the listening, too.
    const begun = async (): Promise<Value> => work()
    begun()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', aborted))
  })
}

/** The same for a call that has no other option. */
export async function reading<Value>(
  where: string,
  options: AbortOption | undefined,
  work: () => Promise<Value>,
): Promise<Value> {
  if (options !== undefined) checkOptions(options, ['abortSignal'], where)
  return abortable(where, options?.abortSignal, work)
}

/** The loads of a store, each of which the signal ends. */
export function abortableLoads(store: Pick<Store, 'load'>, signal: AbortSignal | undefined): Pick<Store, 'load'> {
  if (signal === undefined) return store
  return {
    load: (requests, mostBytes) => abortable('Reading a journal', signal, () => store.load(requests, mostBytes)),
  }
}

/** Throws STORE_UNAVAILABLE if the signal has fired. */
export function assertNotAborted(where: string, signal: AbortSignal | undefined, sent = true): void {
  if (signal?.aborted === true) throw unwanted(where, signal, sent)
}

function unwanted(where: string, signal: AbortSignal, sent: boolean): HoldfastError {
  const message = sent
    ? `${where} had not been answered when its abortSignal fired. What was asked of the store by then may have happened or not.`
    : `${where} asked the store for nothing, because its abortSignal has fired.`
  return new HoldfastError('STORE_UNAVAILABLE', message, { cause: signal.reason as unknown, details: { sent } })
}
