// The presets' numbers, what is inherited and what is refused, and who has the last word after a failure.

import { describe, expect, it } from 'vitest'
import { isHoldfastError, type ErrorCode } from '../../../../src/core/errors/error.ts'
import type { Random } from '../../../../src/core/runtime/ports.ts'
import {
  afterFailure,
  retryDelay,
  retryPolicy,
  retryPresets,
  type Retry,
  type RetryPolicy,
} from '../../../../src/core/definition/retry.ts'
import { fatal, retryAfter } from '../../../../src/core/definition/retry-mark.ts'

const lowest: Random = { uint32: () => 0 }
const highest: Random = { uint32: () => 0xffffffff }
const middle: Random = { uint32: () => 0x80000000 }

const { patient, standard, quick, eager, spread, none } = retryPresets

function delaysOf(policy: RetryPolicy, random: Random, attempts = 10): number[] {
  return Array.from({ length: attempts }, (_, index) => retryDelay(policy, index + 1, random))
}

function refusal(retry: unknown, code: ErrorCode = 'INVALID_OPTION'): string {
  try {
    retryPolicy(retry as Retry, standard, 'retry of "checkout"')
  } catch (error) {
    if (isHoldfastError(error, code)) return error.message
    throw error
  }
  throw new Error('Nothing was thrown')
}

describe('presets', () => {
  it('IF-R2 waits 1 s, doubled up to 300 s, without jitter, five attempts in all', () => {
    const exact = [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]
    expect(delaysOf(patient, lowest)).toEqual(exact)
    expect(delaysOf(patient, highest)).toEqual(exact)
    expect(patient.maxAttempts).toBe(5)
  })

  it('SW-R1 adds up to half of the delay, which is capped at 5 minutes before that', () => {
    expect(delaysOf(standard, lowest)).toEqual(delaysOf(patient, lowest))
    expect(delaysOf(standard, highest).slice(0, 2)).toEqual([1499, 2999])
    expect(retryDelay(standard, 20, highest)).toBe(449_999)
    expect(standard.maxAttempts).toBe(3)
  })

  it('SW-R4 the first delay is `initial`, not twice it', () => {
    expect(retryDelay(standard, 1, lowest)).toBe(1000)
  })

  it('WC-R1 waits 100 ms, doubled up to 300 s, 5 % either way, three attempts in all', () => {
    expect(delaysOf(quick, middle).slice(0, 3)).toEqual([100, 200, 400])
    expect(retryDelay(quick, 1, lowest)).toBe(95)
    expect(retryDelay(quick, 1, highest)).toBe(104)
    expect(retryDelay(quick, 100, middle)).toBe(300_000)
    expect(quick.maxAttempts).toBe(3)
  })

  it('HE-R2 waits exactly, at most 60 s, five attempts in all', () => {
    expect(delaysOf(eager, highest, 8)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(eager.maxAttempts).toBe(5)
  })

  it('PQ-R1 waits 1 s, doubled up to 60 s, 25 % either way but never under 1 s, three attempts in all', () => {
    expect(retryDelay(spread, 1, lowest)).toBe(1000)
    expect(retryDelay(spread, 1, highest)).toBe(1249)
    expect(retryDelay(spread, 2, lowest)).toBe(1500)
    expect(retryDelay(spread, 100, lowest)).toBe(45_000)
    expect(retryDelay(spread, 100, highest)).toBe(74_999)
    expect(spread.maxAttempts).toBe(3)
  })

  it('none gives up at once', () => {
    expect(afterFailure(none, 1, new Error('x'), lowest)).toEqual({ retry: false, because: 'exhausted' })
  })
})

describe('retryPolicy', () => {
  it('HE-R2 takes from the workflow what the step does not say, and the rest from the engine', () => {
    const onWorkflow = retryPolicy({ maxAttempts: 7, initial: '2s' }, standard, 'workflow')
    const onStep = retryPolicy({ initial: '3s', jitter: { mode: 'none' } }, onWorkflow, 'step')
    expect(onStep).toEqual({ ...standard, maxAttempts: 7, initialMs: 3000, jitter: { mode: 'none' } })
    expect(retryPolicy(undefined, onStep, 'step')).toBe(onStep)
    expect(retryPolicy({}, onStep, 'step')).toEqual(onStep)
  })

  it('C15 a preset by name replaces the inherited policy as a whole', () => {
    const inherited = retryPolicy({ maxAttempts: 9, retryable: () => false }, standard, 'workflow')
    expect(retryPolicy('spread', inherited, 'step')).toEqual(spread)
  })

  it('HE-R1 knows exponential, linear and constant delays', () => {
    const policy = (kind: 'exponential' | 'linear' | 'constant') =>
      retryPolicy({ kind, initial: '1s', factor: 3, max: '10s' }, patient, 'step')
    expect(delaysOf(policy('exponential'), lowest, 4)).toEqual([1000, 3000, 9000, 10_000])
    expect(delaysOf(policy('linear'), lowest, 4)).toEqual([1000, 2000, 3000, 4000])
    expect(delaysOf(policy('constant'), lowest, 4)).toEqual([1000, 1000, 1000, 1000])
    expect(retryDelay(policy('linear'), 1000, lowest)).toBe(10_000)
  })

  it('an inherited bound gives way to what the author wrote', () => {
    expect(retryDelay(retryPolicy({ initial: '10m' }, patient, 'step'), 1, lowest)).toBe(600_000)
    expect(retryDelay(retryPolicy({ max: '200ms' }, patient, 'step'), 1, lowest)).toBe(200)
    expect(retryDelay(retryPolicy({ max: '200ms' }, spread, 'step'), 1, highest)).toBeLessThanOrEqual(250)
    expect(retryDelay(retryPolicy({ min: '10m' }, spread, 'step'), 1, lowest)).toBe(600_000)
  })

  it('two bounds of the author that contradict each other are refused', () => {
    expect(refusal({ initial: '10s', max: '5s' })).toMatch(/initial \(10 s\).*max \(5 s\)/)
    expect(refusal({ min: '10s', max: '5s' })).toMatch(/min \(10 s\).*max \(5 s\)/)
  })

  it('a misspelt option is refused, with what was meant', () => {
    const message = refusal({ maxAttemps: 3 })
    expect(message).toContain('retry of "checkout"')
    expect(message).toContain('Did you mean "maxAttempts"?')
    expect(refusal({ jitter: { mode: 'none', ratio: 0.5 } })).toContain('"ratio"')
    expect(refusal({ jitter: { mode: 'add', ration: 0.5 } })).toContain('Did you mean "ratio"?')
    expect(refusal('patent')).toContain('Did you mean "patient"?')
    expect(refusal('toString')).toContain('standard')
    expect(refusal({ kind: 'exponental' })).toContain('Did you mean "exponential"?')
    expect(refusal({ jitter: { mode: 'symetric', ratio: 0.1 } })).toContain('Did you mean "symmetric"?')
  })

  it.each([
    [{ maxAttempts: 0 }, 'maxAttempts'],
    [{ maxAttempts: 2.5 }, 'maxAttempts'],
    [{ maxAttempts: Number.NaN }, 'maxAttempts'],
    [{ maxAttempts: -1 }, 'maxAttempts'],
    [{ maxAttempts: '3' }, 'maxAttempts'],
    [{ maxAttempts: null }, 'maxAttempts'],
    [{ factor: 0.5 }, 'factor'],
    [{ factor: Number.NaN }, 'factor'],
    [{ factor: Infinity }, 'factor'],
    [{ factor: '2' }, 'factor'],
    [{ kind: null }, 'kind'],
    [{ retryable: true }, 'retryable'],
    [{ jitter: null }, 'jitter'],
    [{ jitter: 0.5 }, 'jitter'],
    [{ jitter: {} }, 'mode'],
    [{ jitter: { mode: 'add' } }, 'ratio'],
    [{ jitter: { mode: 'add', ratio: 1.5 } }, 'ratio'],
    [{ jitter: { mode: 'add', ratio: -0.1 } }, 'ratio'],
    [{ jitter: { mode: 'add', ratio: Number.NaN } }, 'ratio'],
    [null, 'plain object'],
    [[], 'plain object'],
    [3, 'plain object'],
  ])('refuses %j', (retry, named) => {
    expect(refusal(retry)).toContain(named)
  })

  it.each([{ initial: -1 }, { max: Number.NaN }, { min: '1 fortnight' }, { initial: null }])('refuses %j', (retry) => {
    expect(refusal(retry, 'INVALID_DURATION')).toContain(`retry of "checkout".${Object.keys(retry)[0]}`)
  })

  it('accepts Infinity: some things are tried until they work', () => {
    const policy = retryPolicy({ maxAttempts: Infinity }, standard, 'step')
    expect(afterFailure(policy, 1e9, new Error('x'), lowest)).toEqual({ retry: true, delayMs: 300_000 })
  })
})

describe('retryDelay', () => {
  it('is a number for the millionth attempt, and with an `initial` of 0', () => {
    for (const policy of [...Object.values(retryPresets), { ...patient, initialMs: 0 }]) {
      for (const attempt of [1000, 1e6, Number.MAX_SAFE_INTEGER]) {
        expect(Number.isSafeInteger(retryDelay(policy, attempt, highest))).toBe(true)
      }
    }
    expect(retryDelay({ ...patient, initialMs: 0 }, 1e6, highest)).toBe(0)
  })
})

describe('afterFailure', () => {
  it('PQ-R3 gives up after the last attempt, and not one earlier', () => {
    const outcomes = [1, 2, 3, 4].map((attempt) => afterFailure(standard, attempt, new Error('x'), lowest))
    expect(outcomes).toEqual([
      { retry: true, delayMs: 1000 },
      { retry: true, delayMs: 2000 },
      { retry: false, because: 'exhausted' },
      { retry: false, because: 'exhausted' },
    ])
  })

  it('PQ-E7 a permanent error is not retried; one that asks for a delay is, and so is one that says nothing', () => {
    expect(afterFailure(spread, 1, fatal('gone'), lowest)).toEqual({ retry: false, because: 'fatal' })
    expect(afterFailure(spread, 1, retryAfter('7s'), lowest)).toEqual({ retry: true, delayMs: 7000 })
    expect(afterFailure(spread, 1, 'not even an error', lowest)).toEqual({ retry: true, delayMs: 1000 })
  })

  it('PQ-R2 retryAfter given by the error replaces the computed delay, also below `min` and above `max`', () => {
    expect(afterFailure(spread, 2, retryAfter('10ms'), highest)).toEqual({ retry: true, delayMs: 10 })
    expect(afterFailure(spread, 2, retryAfter('2 days'), highest)).toEqual({ retry: true, delayMs: 172_800_000 })
    expect(afterFailure(spread, 1, retryAfter(0), highest)).toEqual({ retry: true, delayMs: 0 })
  })

  it('retryAfter still counts, so an error cannot keep a run alive for ever', () => {
    expect(afterFailure(spread, 3, retryAfter('1s'), lowest)).toEqual({ retry: false, because: 'exhausted' })
  })

  it('PQ-R3 an error that the policy calls permanent is not retried', () => {
    const policy = retryPolicy({ retryable: (error) => error instanceof RangeError }, standard, 'step')
    expect(afterFailure(policy, 1, new TypeError('x'), lowest)).toEqual({ retry: false, because: 'not-retryable' })
    expect(afterFailure(policy, 1, new RangeError('x'), lowest)).toEqual({ retry: true, delayMs: 1000 })
  })

  it('what the error says itself goes before what the policy says of it', () => {
    const never = retryPolicy({ retryable: () => false }, standard, 'step')
    expect(afterFailure(never, 1, retryAfter('5s'), lowest)).toEqual({ retry: true, delayMs: 5000 })
    const always = retryPolicy({ retryable: () => true }, standard, 'step')
    expect(afterFailure(always, 1, fatal('x'), lowest)).toEqual({ retry: false, because: 'fatal' })
  })

  it('names the error, not the count, when both would end it', () => {
    const never = retryPolicy({ retryable: () => false }, standard, 'step')
    expect(afterFailure(never, 3, new Error('x'), lowest)).toEqual({ retry: false, because: 'not-retryable' })
    expect(afterFailure(never, 3, fatal('x'), lowest)).toEqual({ retry: false, because: 'fatal' })
  })

  it('a predicate that throws does not forbid the retry, and its error is handed on', () => {
    const broken = retryPolicy(
      {
        retryable: () => {
          throw new Error('broken predicate')
        },
      },
      standard,
      'step',
    )
    const predicate = { broken: { error: new Error('broken predicate') } }
    expect(afterFailure(broken, 1, new Error('x'), lowest)).toEqual({ retry: true, delayMs: 1000, ...predicate })
    expect(afterFailure(broken, 3, new Error('x'), lowest)).toEqual({
      retry: false,
      because: 'exhausted',
      ...predicate,
    })
  })
})
