// Durations as users write them ('5m', '2 days', 250) and as the engine counts them: whole milliseconds. A misspelt unit is
// an error of the compiler where the text is a literal, and a clear error at run time elsewhere. Fractions of a millisecond
// are rounded up, because nothing may become due early.

import { HoldfastError } from '../errors/error.ts'
import { didYouMean, shown } from '../text/suggest.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const week = 7 * day

const units = {
  ms: 1,
  s: second,
  sec: second,
  seconds: second,
  second,
  m: minute,
  min: minute,
  minutes: minute,
  minute,
  h: hour,
  hours: hour,
  hour,
  d: day,
  days: day,
  day,
  w: week,
  weeks: week,
  week,
} as const

/** Common other names of units, for which a suggestion by spelling would be missing or wrong. */
const otherWords: Readonly<Record<string, Unit>> = {
  msec: 'ms',
  msecs: 'ms',
  millis: 'ms',
  millisecond: 'ms',
  milliseconds: 'ms',
  hr: 'h',
  hrs: 'h',
}

type Unit = keyof typeof units

/** Milliseconds, or a number with a unit: `'250ms'`, `'5m'`, `'1.5 hours'`, `'2 days'`. */
export type Duration = number | `${number}${Unit}` | `${number} ${Unit}`

/** A hundred years. A larger number is a mistake, such as a point in time. */
const longestMs = 36_525 * day

const longestText = 32

/** The range of an option, in milliseconds. */
export interface Bounds {
  /** @default 0 */
  readonly min?: number
  /** @default 100 years */
  readonly max?: number
}

/** For options that make no sense at zero: a limit that is over at once, a poll that follows the last one at once. */
export const someTime: Bounds = { min: 1 }

/** For leases: if one is too short for a heartbeat, no worker could hold a run. */
export const leaseBounds: Bounds = { min: 50, max: 365 * day }

/** For intervals of polling. */
export const pollBounds: Bounds = { min: 1, max: day }

/** For waits that block something: a slot is held, or a deployment waits. */
export const patienceBounds: Bounds = { max: day }

/** The milliseconds of a duration that a programmer wrote; `what` names its place in the error. */
export function toMs(duration: Duration, what: string, bounds?: Bounds): number {
  const ms = msOf(duration, what)
  if (bounds === undefined) return ms
  const { min = 0, max = longestMs } = bounds
  if (ms >= min && ms <= max) return ms
  const given = typeof duration === 'number' ? formatMs(duration) : shown(duration)
  throw new HoldfastError(
    'INVALID_DURATION',
    `${what} must be from ${formatMs(min)} to ${max === longestMs ? '100 years' : formatMs(max)}. Got ${given}.`,
    { details: { what, given: typeof duration === 'number' ? duration : given, min, max } },
  )
}

/** What takes a point in time in place of a duration. */
const otherCalls: Readonly<Record<string, string>> = {
  'ctx.sleep': 'Use ctx.sleepUntil.',
  'start(…, { delay })': 'Use { runAt }.',
}

function msOf(duration: Duration, what: string): number {
  if (typeof duration === 'string') return parseDuration(duration, what)
  if (typeof duration !== 'number') {
    const isDate = (duration as unknown) instanceof Date
    const why = isDate ? 'a Date is a point in time, not how long.' : `${shown(duration)} is neither a number nor text.`
    throw invalid(duration, what, why + (isDate ? ` ${otherCalls[what] ?? ''}`.trimEnd() : ''))
  }
  return wholeMs(duration, duration, what)
}

/** The milliseconds of a text of unknown origin: a request, a command line, a configuration file. */
export function parseDuration(text: string, what: string): number {
  const match = text.length > longestText ? null : /^([-+.\d]+) ?([a-z]*)$/i.exec(text.trim())
  if (match === null) throw invalid(text, what, `${shown(text)} is not a number with a unit.`)
  const [, digits = '', unit = ''] = match
  const amount = Number(digits)
  if (Number.isNaN(amount)) throw invalid(text, what, `${shown(text)} does not begin with a number.`)
  if (unit === '') throw invalid(text, what, `${shown(text)} has no unit. Did you mean "${digits} ms"?`)
  if (!isUnit(unit)) throw invalid(text, what, `${shown(text)} has an unknown unit.${suggestion(unit)}`)
  return wholeMs(amount * units[unit], text, what)
}

/** A readable duration: `250 ms`, `1.5 s`, `2 days`. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return `${ms} ms`
  if (ms < 0) return `-${formatMs(-ms)}`
  // Rounded before it is compared: 59,999 ms are a minute, not 60 s.
  if (tenths(ms) < second) return `${tenths(ms)} ms`
  if (tenths(ms / second) < 60) return `${tenths(ms / second)} s`
  if (tenths(ms / minute) < 60) return `${tenths(ms / minute)} min`
  if (tenths(ms / hour) < 24) return `${tenths(ms / hour)} h`
  const days = tenths(ms / day)
  return days === 1 ? '1 day' : `${days} days`
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

function wholeMs(ms: number, given: unknown, what: string): number {
  if (Number.isNaN(ms)) throw invalid(given, what, 'NaN is not a number of milliseconds.')
  if (ms < 0) throw invalid(given, what, `${shown(given)} is negative.`)
  if (ms > longestMs) throw invalid(given, what, `${shown(given)} is over 100 years.`)
  // The subtracted amount is the rounding error of the multiplication: '4.1 s' is not 4100.000000000001 ms.
  return Math.max(0, Math.ceil(ms - 1e-6))
}

function isUnit(text: string): text is Unit {
  return Object.hasOwn(units, text)
}

function suggestion(unit: string): string {
  const word = unit.toLowerCase()
  const known = Object.hasOwn(otherWords, word) ? otherWords[word] : undefined
  return known === undefined ? didYouMean(unit, Object.keys(units)) : ` Did you mean "${known}"?`
}

function invalid(given: unknown, what: string, why: string): HoldfastError {
  return new HoldfastError(
    'INVALID_DURATION',
    `${what} is not a duration: ${why} Give milliseconds as a number, or text such as "250ms", "5m" or "2 days" ` +
      `(units: ${Object.keys(units).join(', ')}), from 0 to 100 years.`,
    { details: { what, given: typeof given === 'number' ? given : shown(given) } },
  )
}
