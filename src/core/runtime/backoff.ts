// The pauses before a failed operation is tried again: longer each time, with jitter, never for ever. And a bound on waiting
// for a result that may never come.

import { randomFraction, type Cancel, type Clock, type Ports, type Random } from './ports.ts'

export interface BackoffBounds {
  readonly firstMs: number
  readonly longestMs: number
}

const usual: BackoffBounds = { firstMs: 10, longestMs: 1_000 }

/** Returns a function that says how long to pause, each time about twice as long as the time before. */
export function createBackoffDelays(random: Random, { firstMs, longestMs }: BackoffBounds = usual): () => number {
  let ms = Math.min(firstMs, longestMs)
  return () => {
    const jittered = Math.round(ms * (0.5 + randomFraction(random)))
    ms = Math.min(2 * ms, longestMs)
    return jittered
  }
}

/** Returns a function that pauses, each time about twice as long as the time before. */
export function createBackoff(
  { clock, random }: Pick<Ports, 'clock' | 'random'>,
  bounds?: BackoffBounds,
): () => Promise<void> {
  const delay = createBackoffDelays(random, bounds)
  return () => new Promise((resolve) => clock.after(delay(), resolve))
}

/**
 * Settles with the work, or after that time with the result of `late`, if there is one. The work goes on, and its result is
 * ignored.
 */
export async function withTimeout<Result>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: Promise<Result>,
  late: () => Result | undefined = () => undefined,
): Promise<Result | undefined> {
  let cancel: Cancel = () => undefined
  const over = new Promise<void>((resolve) => (cancel = clock.after(ms, resolve)))
  work.catch(() => undefined)
  try {
    return await Promise.race([work, over.then(late)])
  } finally {
    cancel()
  }
}
