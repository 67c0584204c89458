// The one retry policy of the engine: for bodies, steps, effects and whatever else is attempted more than once.
// A policy is resolved and checked once, where it is declared; from then on it is only numbers. How long to wait is a
// pure function of the policy, the number of the attempt that failed, and chance.
//
// What was declared nearest counts: step, then workflow, then engine. Where an inherited bound contradicts a value that
// the author wrote, the bound gives way; where two values of the author contradict each other, that is an error.

import { formatMs, toMs, type Duration } from './duration.ts'
import { HoldfastError } from './error.ts'
import { randomFraction, type Random } from './ports.ts'
import { checkOptions, didYouMean, shown } from './suggest.ts'
import { verdictOf } from './verdict.ts'

/** Chance in the delay: up to `ratio` of it on top, or up to `ratio` of it either way. */
export type Jitter = { readonly mode: 'none' } | { readonly mode: 'add' | 'symmetric'; readonly ratio: number }

type Kind = 'exponential' | 'linear' | 'constant'

/** How failures are repeated. What is left out is taken from the workflow, then from the engine. */
export interface RetryOptions {
  /**
   * How often it is tried at most, the first time included. `Infinity` never gives up.
   * @default 3
   */
  readonly maxAttempts?: number
  /**
   * How the delay grows: times `factor`, by `base`, or not at all.
   * @default 'exponential'
   */
  readonly kind?: Kind
  /**
   * The delay after the first failure.
   * @default '1s'
   */
  readonly base?: Duration
  /**
   * What each exponential delay is multiplied by to give the next; at least 1.
   * @default 2
   */
  readonly factor?: number
  /**
   * The longest delay, before jitter.
   * @default '5m'
   */
  readonly cap?: Duration
  /**
   * The shortest delay, after jitter.
   * @default 0
   */
  readonly floor?: Duration
  /** @default { mode: 'add', ratio: 0.5 } */
  readonly jitter?: Jitter
  /** Tells which errors are worth another attempt. By default all are; `fatal` and `retryAfter` are not asked about. */
  readonly retryable?: (error: unknown) => boolean
}

/** A policy with nothing left out. */
export interface RetryPolicy {
  readonly maxAttempts: number
  readonly kind: Kind
  readonly baseMs: number
  readonly factor: number
  readonly capMs: number
  readonly floorMs: number
  readonly jitter: Jitter
  readonly retryable: (error: unknown) => boolean
}

const plain: RetryPolicy = {
  maxAttempts: 5,
  kind: 'exponential',
  baseMs: 1000,
  factor: 2,
  capMs: 300_000,
  floorMs: 0,
  jitter: { mode: 'none' },
  retryable: () => true,
}

/**
 * Complete policies by name, with the numbers of the designs that Holdfast grew from. `simpleWorkflow` is the engine's
 * default. In all of them an error is worth another attempt unless it is `fatal`. Hephaestus names no base: it has 1 s.
 */
export const retryPresets = {
  simpleWorkflow: { ...plain, maxAttempts: 3, jitter: { mode: 'add', ratio: 0.5 } },
  ironflow: plain,
  coordinator: { ...plain, maxAttempts: 3, baseMs: 100, jitter: { mode: 'symmetric', ratio: 0.05 } },
  hephaestus: { ...plain, capMs: 60_000 },
  pgqrs: { ...plain, maxAttempts: 3, capMs: 60_000, floorMs: 1000, jitter: { mode: 'symmetric', ratio: 0.25 } },
  none: { ...plain, maxAttempts: 1 },
} as const satisfies Record<string, RetryPolicy>

/** What an author may write: options, or the name of a preset, which replaces the inherited policy as a whole. */
export type Retry = RetryOptions | keyof typeof retryPresets

/** The policy that an author's words mean. Throws INVALID_OPTION or INVALID_DURATION; `where` names the place. */
export function retryPolicy(retry: Retry | undefined, inherited: RetryPolicy, where: string): RetryPolicy {
  if (retry === undefined) return inherited
  if (typeof retry === 'string') return preset(retry, where)
  checkOptions(retry, optionNames, where)
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
  const raw = Math.min(policy.capMs, Math.round(rawDelay(policy, Math.max(1, failedAttempt))))
  return Math.max(policy.floorMs, raw + jitterOf(policy.jitter, raw, random))
}

export type AfterFailure =
  | { readonly retry: true; readonly delayMs: number }
  | { readonly retry: false; readonly because: 'fatal' | 'not-retryable' | 'exhausted' }

/** What to do after an attempt failed. What the error itself says goes before the policy; the count goes for both. */
export function afterFailure(policy: RetryPolicy, failedAttempt: number, error: unknown, random: Random): AfterFailure {
  const verdict = verdictOf(error)
  if (verdict?.kind === 'fatal') return { retry: false, because: 'fatal' }
  if (verdict === undefined && !isRetryable(policy, error)) return { retry: false, because: 'not-retryable' }
  if (failedAttempt >= policy.maxAttempts) return { retry: false, because: 'exhausted' }
  return { retry: true, delayMs: verdict?.delayMs ?? retryDelay(policy, failedAttempt, random) }
}

function rawDelay({ kind, baseMs, factor }: RetryPolicy, attempt: number): number {
  if (kind === 'constant') return baseMs
  if (kind === 'linear') return baseMs * attempt
  // The power is infinite from some attempt on, and zero times infinity is not a number.
  return baseMs === 0 ? 0 : baseMs * factor ** (attempt - 1)
}

/** Cut towards zero, so that a delay in whole milliseconds never leaves the bounds. */
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

/** A predicate that throws has not said no. */
function isRetryable(policy: RetryPolicy, error: unknown): boolean {
  try {
    return policy.retryable(error)
  } catch {
    return true
  }
}

const kinds = ['exponential', 'linear', 'constant'] as const
const jitterModes = ['none', 'add', 'symmetric'] as const
const optionNames = ['maxAttempts', 'kind', 'base', 'factor', 'cap', 'floor', 'jitter', 'retryable'] as const

function preset(name: string, where: string): RetryPolicy {
  const names = Object.keys(retryPresets)
  if (Object.hasOwn(retryPresets, name)) return retryPresets[name as keyof typeof retryPresets]
  const hint = didYouMean(name, names)
  const message = `${where} names no retry preset: ${shown(name)}.${hint} The presets are: ${names.join(', ')}.`
  throw new HoldfastError('INVALID_OPTION', message, { details: { where, allowed: names } })
}

function delays(retry: RetryOptions, inherited: RetryPolicy, where: string) {
  const base = retry.base === undefined ? undefined : toMs(retry.base, `${where}.base`)
  const cap = retry.cap === undefined ? undefined : toMs(retry.cap, `${where}.cap`)
  const floor = retry.floor === undefined ? undefined : toMs(retry.floor, `${where}.floor`)
  if (cap !== undefined && base !== undefined && base > cap) throw overCap(where, 'base', base, cap)
  if (cap !== undefined && floor !== undefined && floor > cap) throw overCap(where, 'floor', floor, cap)
  const capMs = cap ?? Math.max(inherited.capMs, base ?? 0, floor ?? 0)
  return {
    baseMs: Math.min(base ?? inherited.baseMs, capMs),
    capMs,
    floorMs: Math.min(floor ?? inherited.floorMs, capMs),
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

function overCap(where: string, name: string, ms: number, capMs: number): HoldfastError {
  const [given, cap] = [formatMs(ms), formatMs(capMs)]
  const message = `${where}.${name} (${given}) is over ${where}.cap (${cap}). Lower the one or raise the other.`
  return new HoldfastError('INVALID_OPTION', message, { details: { where, [name]: ms, cap: capMs } })
}

function invalid(where: string, expected: string, value: unknown, hint = ''): HoldfastError {
  const message = `${where} must be ${expected}, not ${shown(value)}.${hint}`
  return new HoldfastError('INVALID_OPTION', message, { details: { where } })
}
