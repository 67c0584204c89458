// What a crowd of workers drains: Holdfast, or a peer in its place. Each knows how to fill its tables, how one process works
// on them, and how to see that nothing is left.

import { createRequire } from 'node:module'

export interface Place {
  readonly url: string
  readonly schema: string
  /** Over how many types the jobs are spread. */
  readonly types: number
}

export interface Claims {
  readonly all: number
  /** Those that found nothing. */
  readonly empty: number
}

/** A process that works. */
export interface Hand {
  start(): Promise<void>
  stop(): Promise<void>
  /** What it asked so far; null if that cannot be seen. */
  claims(): Claims | null
}

export interface Queue {
  readonly name: QueueName
  /** Makes its tables and puts so many jobs into them, 1,000 together. Answers how many ms it took, without the tables. */
  enqueue(place: Place, jobs: number): Promise<number>
  /** Connects, but does not begin. */
  open(place: Place, slots: number, performed: () => void): Promise<Hand>
  /** A query that says in `left` whether something has not ended. */
  left(place: Place): string
}

export const queueNames = ['holdfast', 'graphile-worker', 'graphile-worker, tuned', 'pg-boss, tuned'] as const

export type QueueName = (typeof queueNames)[number]

/** Puts jobs into a queue, so many at once, and answers how many ms it took. */
export async function timedBatches(
  jobs: number,
  put: (first: number, length: number) => Promise<void>,
): Promise<number> {
  const began = performance.now()
  for (let first = 0; first < jobs; first += enqueuedTogether) {
    await put(first, Math.min(enqueuedTogether, jobs - first))
  }
  return performance.now() - began
}

const enqueuedTogether = 1_000

export function typeName(index: number): string {
  return `bench-type-${index}`
}

/** Peers stand in a folder with an install of its own. Compiled, this file lies three folders below `bench`. */
const peers = createRequire(new URL('../../../peers/package.json', import.meta.url))

/** Loads the module of a peer; null if `npm ci --prefix bench/peers` has not been run. */
export function peer(name: string): unknown {
  try {
    return peers(name) as unknown
  } catch (error) {
    if ((error as { code?: unknown }).code === 'MODULE_NOT_FOUND') return null
    throw error
  }
}
