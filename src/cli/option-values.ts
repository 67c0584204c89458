// Reads the values of options: numbers, points in time, lists, pairs.

import { parseDuration, type Duration } from '../core/duration.ts'
import { isHoldfastError } from '../core/error.ts'
import { quoted, usage } from './usage.ts'

/** A whole number. */
export function whole(name: string, least = -Infinity): (text: string) => number {
  return (text) => {
    const value = /^[-+]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least) return value
    const from = least === -Infinity ? '' : ` from ${least}`
    throw usage(`${name} must be a whole number${from}. Got ${quoted(text)}.`)
  }
}

/** An option that may be given more than once. */
export function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** A duration, as the client takes it. */
export function duration(name: string): (text: string) => Duration {
  return (text) => parseDuration(text, name)
}

/** A point in time, or how long ago it was: `2026-11-16T00:00:00Z`, `1h`. */
export function pastTime(text: string, name: string, now: number): Date {
  return pointOf(text, name, (ms) => new Date(now - ms))
}

/** A point in time, or how long from now: the latter is left to the store's clock. */
export function futureTime(text: string, name: string): Date | Duration {
  return pointOf<Date | Duration>(text, name, (ms) => ms)
}

function pointOf<Point>(text: string, name: string, fromMs: (ms: number) => Point): Point | Date {
  if (/^\d{4}-\d\d-\d\d/.test(text)) {
    const at = new Date(text)
    if (!Number.isNaN(at.getTime())) return at
  }
  try {
    return fromMs(parseDuration(text, name))
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    throw usage(`${name} takes a time such as 2026-11-16T08:00:00Z, or a duration such as 1h. Got ${quoted(text)}.`)
  }
}

/** `--meta region=eu --meta team=shop` as an object. */
export function pairs(texts: readonly string[], name: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
      throw usage(`${name} takes name=value, for example ${name} region=eu. Got ${quoted(text)}.`)
    }),
  )
}
