// How long to pause before something that was unavailable is tried again: longer each time, with jitter, never for ever.

import { randomFraction, type Ports } from './ports.ts'

const firstMs = 10
const longestMs = 1_000

/** Returns a function that pauses, each time about twice as long as the time before. */
export function growingPauses({ clock, random }: Pick<Ports, 'clock' | 'random'>): () => Promise<void> {
  let ms = firstMs
  return () => {
    const jittered = Math.round(ms * (0.5 + randomFraction(random)))
    ms = Math.min(2 * ms, longestMs)
    return new Promise((resolve) => clock.after(jittered, resolve))
  }
}
