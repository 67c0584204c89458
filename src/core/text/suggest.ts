// Help for a programmer who misspelt a name: the name that was probably meant, and the options that exist. A suggestion is
// made only when it is really close, because a wrong one costs more time than none. The arguments may come from any source,
// so the work is bounded and no object is asked to print itself.

import { HoldfastError } from '../errors/error.ts'
import { quotedText } from './printable.ts'

const longestName = 64
/** How many unknown options an error names. */
const mostNamed = 20

/** The candidate that was probably meant by `name`, ignoring case; the first of several that are equally close. */
export function closest(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length === 0 || name.length > longestName) return undefined
  const given = name.toLowerCase()
  let best: string | undefined
  let bestDistance = Infinity
  for (const candidate of candidates) {
    if (candidate.length > longestName) continue
    // A third of the letters may be wrong; a name of two letters has none to spare.
    const limit = Math.min(3, Math.floor(Math.max(given.length, candidate.length) / 3), bestDistance - 1)
    const distance = editDistance(given, candidate.toLowerCase(), limit)
    if (distance > limit) continue
    best = candidate
    bestDistance = distance
  }
  return best
}

/** ` Did you mean "x"?`, to be put behind a sentence, or nothing; always nothing for a value that is no text. */
export function didYouMean(name: unknown, candidates: Iterable<string>): string {
  const meant = typeof name === 'string' ? closest(name, candidates) : undefined
  return meant === undefined ? '' : ` Did you mean "${meant}"?`
}

/**
 * Refuses anything but a plain object that has no other keys than the allowed ones. `elsewhere` says of options that belong to
 * another call where they do.
 */
export function checkOptions(
  options: unknown,
  allowed: readonly string[],
  where: string,
  elsewhere: Readonly<Record<string, string>> = {},
): void {
  if (!isPlainObject(options)) {
    const message = `${where} must be a plain object with options, not ${shown(options)}. ${listed(allowed)}`
    throw new HoldfastError('INVALID_OPTION', message, { details: { where, allowed } })
  }
  const keys = Object.keys(options)
  for (const [at, key] of keys.entries()) {
    if (allowed.includes(key)) continue
    // Only some of a hundred thousand unknown options are named.
    const others = keys.slice(at, at + mostNamed).filter((other) => !allowed.includes(other))
    const unknown = others.map((other) => other.slice(0, longestName))
    throw new HoldfastError(
      'INVALID_OPTION',
      `${where} has no option ${shown(key)}.${meantBy(key, allowed, elsewhere)} ${listed(allowed)}`,
      { details: { where, unknown, allowed } },
    )
  }
}

function meantBy(key: string, allowed: readonly string[], elsewhere: Readonly<Record<string, string>>): string {
  const there = Object.hasOwn(elsewhere, key) ? elsewhere[key] : undefined
  return there === undefined ? didYouMean(key, allowed) : ` ${there}`
}

function listed(allowed: readonly string[]): string {
  return `The options here are: ${allowed.join(', ')}.`
}

/**
 * A value as a message may carry it: short, on one line, without characters that could mislead a terminal or a reader, and
 * without calling code of the value's own.
 */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quotedText(value.length > longestName ? `${value.slice(0, longestName)}…` : value)
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? 'an array' : 'an object'
    case 'function':
      return 'a function'
    case 'bigint':
    case 'symbol':
      return `a ${typeof value}`
    default:
      return String(value)
  }
}

export function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  // Not compared with Object.prototype: an object from another realm has one of its own.
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** How many letters must be added, left out, replaced or swapped with their neighbour, or any number over the limit. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let cost = Math.min(
        cell(last, column) + 1,
        cell(current, column - 1) + 1,
        cell(last, column - 1) + (same ? 0 : 1),
      )
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped) cost = Math.min(cost, cell(beforeLast, column - 2) + 1)
      current.push(cost)
    }
    beforeLast = last
    last = current
  }
  return cell(last, b.length)
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Infinity
}
