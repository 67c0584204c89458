// The one retry policy of the engine: for bodies, steps, effects and everything else that is attempted more than once. A
// policy is resolved and checked once, where it is declared; from then on it is only numbers. The delay is a pure function
// of the policy, the number of the failed attempt, and a random number.
//
// The nearest declaration counts: step, then workflow, then engine. Where an inherited bound contradicts a value that the
// author wrote, the bound yields; where two values of the author contradict each other, that is an error.

import { formatMs, toMs, type Duration } from './duration.ts'
import { HoldfastError } from '../errors/error.ts'
import { randomFraction, type Random } from '../runtime/ports.ts'
import { checkOptions, didYouMean, shown } from '../text/suggest.ts'
import { retryMarkOf } from './retry-mark.ts'

/** Randomness in the delay: up to `ratio` of it on top, or up to `ratio` of it either way. */
export type Jitter = { readonly mode: 'none' } | { readonly mode: 'add' | 'symmetric'; readonly ratio: number }

type Kind = 'exponential' | 'linear' | 'constant'

/** How failures are retried. Omitted options are inherited from the workflow, then from the engine. */
export interface RetryOptions {
  /**
   * How often it is tried at most, the first time included. `Infinity` never gives up.
   * @default 3
   */
  readonly maxAttempts?: number
  /**
   * How the delay grows: times `factor`, by `initial`, or not at all.
   * @default 'exponential'
   */
  readonly kind?: Kind
  /**
   * The delay after the first failure.
   * @default '1s'
   */
  readonly initial?: Duration
  /**
   * The factor from one exponential delay to the next; at least 1.
   * @default 2
   */
  readonly factor?: number
  /**
   * The longest delay, before jitter.
   * @default '5m'
   */
  readonly max?: Duration
  /**
   * The shortest delay, after jitter.
   * @default 0
   */
  readonly min?: Duration
  /** @default { mode: 'add', ratio: 0.5 } */
  readonly jitter?: Jitter
  /** Which errors are worth another attempt. By default all are; it is not called for `fatal` and `retryAfter`. */
  readonly retryable?: (error: unknown) => boolean
}

/** A complete policy. */
export interface RetryPolicy {
  readonly maxAttempts: number
  readonly kind: Kind
  readonly initialMs: number
  readonly factor: number
  readonly maxMs: number
  readonly minMs: number
  readonly jitter: Jitter
  readonly retryable: (error: unknown) => boolean
}

const plain: RetryPolicy = {
  maxAttempts: 5,
  kind: 'exponential',
  initialMs: 1000,
  factor: 2,
  maxMs: 300_000,
  minMs: 0,
  jitter: { mode: 'none' },
  retryable: () => true,
}

/**
 * Complete policies by name. Each delay is twice the one before it, and every error but a `fatal` one is worth another attempt.
 *
 * | preset     | attempts | first delay | longest delay | jitter          |
 * | ---------- | -------- | ----------- | ------------- | --------------- |
 * | `standard` | 3        | 1 s         | 5 min         | up to +50 %     |
 * | `quick`    | 3        | 100 ms      | 5 min         | ±5 %            |
 * | `spread`   | 3        | 1 s         | 1 min         | ±25 %           |
 * | `eager`    | 5        | 1 s         | 1 min         | none            |
 * | `patient`  | 5        | 1 s         | 5 min         | none            |
 * | `none`     | 1        |             |               |                 |
 *
 * `standard` is the default.
 */
export const retryPresets = {
  standard: { ...plain, maxAttempts: 3, jitter: { mode: 'add', ratio: 0.5 } },
  quick: { ...plain, maxAttempts: 3, initialMs: 100, jitter: { mode: 'symmetric', ratio: 0.05 } },
  spread: { ...plain, maxAttempts: 3, maxMs: 60_000, minMs: 1000, jitter: { mode: 'symmetric', ratio: 0.25 } },
  eager: { ...plain, maxMs: 60_000 },
  patient: plain,
  none: { ...plain, maxAttempts: 1 },
} as const satisfies Record<string, RetryPolicy>

/** A declared policy: options, or the name of a preset, which replaces the inherited policy as a whole. */
export type Retry = RetryOptions | keyof typeof retryPresets

/** Resolves a declared policy. Throws INVALID_OPTION or INVALID_DURATION; `where` names the place. */
export function retryPolicy(retry: Retry | undefined, inherited: RetryPolicy, where: string): RetryPolicy {
  if (retry === undefined) return inherited
  if (typeof retry === 'string') return preset(retry, where)
  if (typeof retry !== 'object') {
    const names = Object.keys(retryPresets).join(', ')
    throw invalid(where, `a plain object such as { maxAttempts: 3 }, or one of the presets ${names}`, retry)
  }
  checkOptions(retry, retryOptionNames, where)
  const {
    maxAttempts = inherited.maxAttempts,
    kind = inherited.kind,
    factor = inherited.factor,
    jitter,
    retryable = inherited.retryable,
  } = retry
  if (maxAttempts !== Infinity && !(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1)) {
    throw invalid(`${where}.maxAttempts`, 'a whole number from 1 on, or Infinity', maxAttempts)
  }
  if (typeof factor !== 'number' || !(factor >= 1 && factor <= 1000)) {
    throw invalid(`${where}.factor`, 'a number from 1 to 1000', factor)
  }
  if (typeof retryable !== 'function') throw invalid(`${where}.retryable`, 'a function', retryable)
  return {
    maxAttempts,
    kind: oneOf(kinds, kind, `${where}.kind`),
    ...delays(retry, inherited, where),
    factor,
    jitter: jitter === undefined ? inherited.jitter : checkedJitter(jitter, `${where}.jitter`),
    retryable,
  }
}

/** How long to wait before the next attempt, in milliseconds. `failedAttempt` is 1 for the first. */
export function retryDelay(policy: RetryPolicy, failedAttempt: number, random: Random): number {
  const raw = Math.min(policy.maxMs, Math.round(rawDelay(policy, Math.max(1, failedAttempt))))
  return Math.max(policy.minMs, raw + jitterOf(policy.jitter, raw, random))
}

export type AfterFailure =
  | { readonly retry: true; readonly delayMs: number; readonly broken?: BrokenPredicate }
  | {
      readonly retry: false
      readonly because: 'fatal' | 'not-retryable' | 'exhausted'
      readonly broken?: BrokenPredicate
    }

/** The predicate of the policy threw, or gave no answer, so the failure is retried as any other. */
export interface BrokenPredicate {
  readonly error: unknown
}

/** The decision after a failed attempt. A mark on the error overrides the policy; the number of attempts bounds both. */
export function afterFailure(policy: RetryPolicy, failedAttempt: number, error: unknown, random: Random): AfterFailure {
  const mark = retryMarkOf(error)
  if (mark?.kind === 'fatal') return { retry: false, because: 'fatal' }
  const judged = mark === undefined ? judge(policy, error) : true
  if (judged === false) return { retry: false, because: 'not-retryable' }
  const broken = judged === true ? {} : { broken: judged }
  if (failedAttempt >= policy.maxAttempts) return { retry: false, because: 'exhausted', ...broken }
  return { retry: true, delayMs: mark?.delayMs ?? retryDelay(policy, failedAttempt, random), ...broken }
}

function rawDelay({ kind, initialMs, factor }: RetryPolicy, attempt: number): number {
  if (kind === 'constant') return initialMs
  if (kind === 'linear') return initialMs * attempt
  // The power is infinite from some attempt on, and zero times infinity is not a number.
  return initialMs === 0 ? 0 : initialMs * factor ** (attempt - 1)
}

/** Truncated, so that a delay in whole milliseconds never leaves the bounds. */
function jitterOf(jitter: Jitter, raw: number, random: Random): number {
  switch (jitter.mode) {
    case 'none':
      return 0
    case 'add':
      return Math.trunc(randomFraction(random) * jitter.ratio * raw)
    case 'symmetric':
      return Math.trunc((2 * randomFraction(random) - 1) * jitter.ratio * raw)
  }
}

/** A predicate that throws, or answers with a promise, does not forbid the retry. */
function judge(policy: RetryPolicy, error: unknown): boolean | BrokenPredicate {
  try {
    const answer: unknown = policy.retryable(error)
    if (!answer) return false
    if (answer instanceof Promise) return { error: promised(answer) }
  } catch (thrown) {
    return { error: thrown }
  }
  return true
}

/** A promise counts as true, whatever it would say, and the attempt cannot wait for it. */
function promised(answer: Promise<unknown>): HoldfastError {
  answer.catch(() => undefined)
  return new HoldfastError('INVALID_OPTION', 'it returned a promise, and must return true or false at once')
}

const kinds = ['exponential', 'linear', 'constant'] as const
const jitterModes = ['none', 'add', 'symmetric'] as const
export const retryOptionNames = [
  'maxAttempts',
  'kind',
  'initial',
  'factor',
  'max',
  'min',
  'jitter',
  'retryable',
] as const

/** Other names under which people look for `retry`. */
export const retryNames: Readonly<Record<string, string>> = Object.fromEntries(
  ['retries', 'attempts', 'maxAttempts'].map((name) => [name, 'Did you mean retry: { maxAttempts: 3 }?']),
)

function preset(name: string, where: string): RetryPolicy {
  const names = Object.keys(retryPresets)
  if (Object.hasOwn(retryPresets, name)) return retryPresets[name as keyof typeof retryPresets]
  const hint = didYouMean(name, names)
  const message = `${where} names no retry preset: ${shown(name)}.${hint} The presets are: ${names.join(', ')}.`
  throw new HoldfastError('INVALID_OPTION', message, { details: { where, allowed: names } })
}

function delays(retry: RetryOptions, inherited: RetryPolicy, where: string) {
  const initial = retry.initial === undefined ? undefined : toMs(retry.initial, `${where}.initial`)
  const max = retry.max === undefined ? undefined : toMs(retry.max, `${where}.max`)
  const min = retry.min === undefined ? undefined : toMs(retry.min, `${where}.min`)
  if (max !== undefined && initial !== undefined && initial > max) throw overMax(where, 'initial', initial, max)
  if (max !== undefined && min !== undefined && min > max) throw overMax(where, 'min', min, max)
  const maxMs = max ?? Math.max(inherited.maxMs, initial ?? 0, min ?? 0)
  return {
    initialMs: Math.min(initial ?? inherited.initialMs, maxMs),
    maxMs,
    minMs: Math.min(min ?? inherited.minMs, maxMs),
  }
}

function checkedJitter(jitter: Jitter, where: string): Jitter {
  checkOptions(jitter, jitter?.mode === 'none' ? ['mode'] : ['mode', 'ratio'], where)
  const mode = oneOf(jitterModes, jitter.mode, `${where}.mode`)
  if (mode === 'none') return { mode }
  const { ratio } = jitter as { readonly ratio?: unknown }
  if (typeof ratio !== 'number' || !(ratio >= 0 && ratio <= 1)) {
    throw invalid(`${where}.ratio`, 'a number from 0 to 1', ratio)
  }
  return { mode, ratio }
}

function oneOf<Value extends string>(allowed: readonly Value[], value: Value, where: string): Value {
  if (allowed.includes(value)) return value
  throw invalid(where, `one of ${allowed.join(', ')}`, value, didYouMean(value, allowed))
}

function overMax(where: string, name: string, ms: number, maxMs: number): HoldfastError {
  const [given, max] = [formatMs(ms), formatMs(maxMs)]
  const message = `${where}.${name} (${given}) is longer than ${where}.max (${max}). Lower the one or raise the other.`
  return new HoldfastError('INVALID_OPTION', message, { details: { where, [name]: ms, max: maxMs } })
}

function invalid(where: string, expected: string, value: unknown, hint = ''): HoldfastError {
  const message = `${where} must be ${expected}, not ${shown(value)}.${hint}`
  return new HoldfastError('INVALID_OPTION', message, { details: { where } })
}
