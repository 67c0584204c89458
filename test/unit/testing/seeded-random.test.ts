// A seed that does not repeat itself replays nothing; one whose numbers are alike tests nothing.

import { describe, expect, it } from 'vitest'
import { randomFraction } from '../../../src/core/runtime/ports.ts'
import { createSeededRandom } from '../../../src/testing/index.ts'

function numbers(seed: number, count: number): number[] {
  const random = createSeededRandom(seed)
  return Array.from({ length: count }, () => random.uint32())
}

describe('createSeededRandom', () => {
  it('gives the same numbers for the same seed on every machine and in every release', () => {
    expect(numbers(42, 1_000)).toEqual(numbers(42, 1_000))
    expect(numbers(42, 4)).toMatchInlineSnapshot(`
      [
        3893884377,
        145076852,
        3246010591,
        4141225530,
      ]
    `)
  })

  it('gives whole numbers of 32 bits, with every bit set about half of the time', () => {
    const ones = Array.from({ length: 32 }, () => 0)
    for (const value of numbers(7, 10_000)) {
      expect(value).toBe(value >>> 0)
      for (let bit = 0; bit < 32; bit += 1) ones[bit] = (ones[bit] ?? 0) + ((value >>> bit) & 1)
    }
    for (const count of ones) expect(Math.abs(count - 5_000)).toBeLessThan(300)
  })

  it('neighbouring seeds, and those that differ above 32 bits, have nothing in common', () => {
    const seeds = [0, 1, 2, 3, -1, 2 ** 32, 2 ** 32 + 1, 2 ** 52]
    const firsts = seeds.flatMap((seed) => numbers(seed, 20))
    expect(new Set(firsts).size).toBe(firsts.length)
  })

  it('fractions stay below one and spread evenly', () => {
    const random = createSeededRandom(3)
    const tenths = Array.from({ length: 10 }, () => 0)
    for (let index = 0; index < 10_000; index += 1) {
      const fraction = randomFraction(random)
      expect(fraction).toBeLessThan(1)
      const tenth = Math.floor(fraction * 10)
      tenths[tenth] = (tenths[tenth] ?? 0) + 1
    }
    for (const count of tenths) expect(Math.abs(count - 1_000)).toBeLessThan(150)
  })
})
