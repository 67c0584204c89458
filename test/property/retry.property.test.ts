// Backoff bounds of every preset, for any attempt and any chance, against formulas written out here a second time.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import type { Random } from '../../src/core/runtime/ports.ts'
import {
  afterFailure,
  retryDelay,
  retryPolicy,
  retryPresets,
  type RetryOptions,
} from '../../src/core/definition/retry.ts'

const attempt = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1_000_000 }))

const uint32 = fc.oneof(fc.constantFrom(0, 0xffffffff), fc.integer({ min: 0, max: 0xffffffff }))

const random: fc.Arbitrary<Random> = fc.tuple(uint32, uint32).map((values) => {
  let at = 0
  return { uint32: () => values[at++ % 2] ?? 0 }
})

/** Doubling by hand, so that the power in the code has something to be compared with. */
function doubled(base: number, cap: number, failedAttempt: number): number {
  let delay = base
  for (let done = 1; done < failedAttempt && delay < cap; done++) delay *= 2
  return Math.min(delay, cap)
}

function check(
  name: keyof typeof retryPresets,
  base: number,
  cap: number,
  bounds: (raw: number) => { low: number; high: number },
): void {
  fc.assert(
    fc.property(attempt, random, (failedAttempt, chance) => {
      const { low, high } = bounds(doubled(base, cap, failedAttempt))
      const delay = retryDelay(retryPresets[name], failedAttempt, chance)
      expect(Number.isInteger(delay)).toBe(true)
      expect(delay).toBeGreaterThanOrEqual(low)
      expect(delay).toBeLessThanOrEqual(high)
    }),
    { numRuns: 500 },
  )
}

describe('backoff bounds', () => {
  it('SW-R1 SW-R4 standard: from the raw delay to one and a half of it', () => {
    check('standard', 1000, 300_000, (raw) => ({ low: raw, high: raw * 1.5 }))
  })

  it('IF-R2 patient: exactly the raw delay', () => {
    check('patient', 1000, 300_000, (raw) => ({ low: raw, high: raw }))
  })

  it('WC-R1 quick: 5 % either way', () => {
    check('quick', 100, 300_000, (raw) => ({ low: raw * 0.95, high: raw * 1.05 }))
  })

  it('HE-R1 HE-R2 eager: exactly the raw delay, at most 60 s', () => {
    check('eager', 1000, 60_000, (raw) => ({ low: raw, high: Math.min(raw, 60_000) }))
  })

  it('PQ-R1 spread: 25 % either way, and at least 1 s', () => {
    check('spread', 1000, 60_000, (raw) => ({ low: Math.max(1000, raw * 0.75), high: raw * 1.25 }))
  })

  it('C15 jitter uses the whole of its range, on both sides', () => {
    const seen = { add: [Infinity, -Infinity], symmetric: [Infinity, -Infinity] }
    for (const mode of ['add', 'symmetric'] as const) {
      const policy = retryPolicy({ initial: 1000, jitter: { mode, ratio: 0.5 } }, retryPresets.patient, 'here')
      for (let value = 0; value < 2 ** 32; value += 2 ** 22) {
        const delay = retryDelay(policy, 1, { uint32: () => value })
        seen[mode] = [Math.min(seen[mode][0] ?? 0, delay), Math.max(seen[mode][1] ?? 0, delay)]
      }
    }
    expect(seen).toEqual({ add: [1000, 1499], symmetric: [500, 1499] })
  })
})

const options: fc.Arbitrary<RetryOptions> = fc.record(
  {
    maxAttempts: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(Infinity)),
    kind: fc.constantFrom('exponential' as const, 'linear' as const, 'constant' as const),
    initial: fc.double({ min: 0, max: 1e6, noNaN: true }),
    factor: fc.double({ min: 1, max: 1000, noNaN: true }),
    jitter: fc.oneof(
      fc.constant({ mode: 'none' as const }),
      fc.record({
        mode: fc.constantFrom('add' as const, 'symmetric' as const),
        ratio: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    ),
  },
  { requiredKeys: [] },
)

const preset = fc.constantFrom(...Object.values(retryPresets))

describe('any policy that an author can write', () => {
  it('gives whole, finite delays that never fall under the floor nor pass the cap and its jitter', () => {
    fc.assert(
      fc.property(options, preset, attempt, random, (retry, inherited, failedAttempt, chance) => {
        const policy = retryPolicy(retry, inherited, 'here')
        const delay = retryDelay(policy, failedAttempt, chance)
        expect(Number.isSafeInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(policy.minMs)
        expect(delay).toBeLessThanOrEqual(policy.maxMs * 2)
      }),
    )
  })

  it('waits longer or as long after each further failure, jitter apart', () => {
    fc.assert(
      fc.property(options, preset, fc.integer({ min: 1, max: 2000 }), (retry, inherited, failedAttempt) => {
        const policy = retryPolicy({ ...retry, jitter: { mode: 'none' } }, inherited, 'here')
        const none: Random = { uint32: () => 0 }
        const earlier = retryDelay(policy, failedAttempt, none)
        expect(retryDelay(policy, failedAttempt + 1, none)).toBeGreaterThanOrEqual(earlier)
      }),
    )
  })

  it('is tried exactly maxAttempts times', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), random, (maxAttempts, chance) => {
        const policy = retryPolicy({ maxAttempts }, retryPresets.standard, 'here')
        let tried = 1
        while (afterFailure(policy, tried, new Error('x'), chance).retry) tried += 1
        expect(tried).toBe(maxAttempts)
      }),
    )
  })
})
