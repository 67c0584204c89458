// Reads the values of options: numbers, points in time, lists, pairs.

import { parseDuration, type Duration } from '../../core/definition/duration.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import { quoted, usage } from '../usage.ts'

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
  const at = dateOf(text)
  if (at !== null) return at
  try {
    return new Date(now - parseDuration(text, name))
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    throw usage(`${name} takes a time such as 2026-11-16T08:00:00Z, or a duration such as 1h. Got ${quoted(text)}.`)
  }
}

/** A point in time: `2026-11-16T00:00:00Z`. `or` is what else the option takes. */
export function pointInTime(text: string, name: string, or?: string): Date {
  const at = dateOf(text)
  if (at !== null) return at
  const more = or === undefined ? '' : `, or ${or}`
  throw usage(`${name} takes a time such as 2026-11-16T08:00:00Z${more}. Got ${quoted(text)}.`)
}

function dateOf(text: string): Date | null {
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null
  const at = new Date(text)
  return Number.isNaN(at.getTime()) ? null : at
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
