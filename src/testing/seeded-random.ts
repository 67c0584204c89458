// Random numbers from a seed: sfc32, which is small, fast and passes PractRand. Not for secrets.

import type { Random } from '../core/runtime/ports.ts'

/**
 * Makes a source of random numbers that gives the same ones for the same seed.
 *
 * @example
 * const random = createSeededRandom(42)
 * random.uint32()
 */
export function createSeededRandom(seed: number): Random {
  // Neighbouring seeds differ in one bit, and so their first numbers are similar; these are discarded.
  let a = seed | 0
  let b = Math.floor(seed / 2 ** 32) | 0
  let c = 0x9e3779b9 | 0
  let counter = 1

  function uint32(): number {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  for (let round = 0; round < 15; round += 1) uint32()
  return { uint32 }
}
