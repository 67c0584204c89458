// Any decoded value as JSON for people and for jq: dates are ISO text, bigints and numbers that JSON lacks are text, maps
// are lists of pairs, sets are lists, bytes are base64, errors are objects. Readable rather than exact: the journal is
// exact. Never throws, not even for values of a user's own codec.

import { isError } from '../../core/payload/error-data.ts'
import { harmlessJson } from '../../core/text/printable.ts'

const deepest = 200

/** One line of JSON that is safe to print. Errors have their stacks only if that is asked for. */
export function jsonLine(value: unknown, { withStacks = false }: { readonly withStacks?: boolean } = {}): string {
  return harmlessJson(JSON.stringify(plain(value, { above: [], withStacks })) ?? 'null')
}

interface Where {
  /** The objects that the value is in. */
  readonly above: readonly object[]
  readonly withStacks: boolean
}

/** The value, converted to plain JSON types. */
function plain(value: unknown, where: Where): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'bigint':
      return String(value)
    case 'object':
      break
    default:
      return value === undefined ? null : `[${typeof value}]`
  }
  if (value === null) return null
  if (where.above.includes(value)) return '[cycle]'
  if (where.above.length >= deepest) return '[deeper]'
  try {
    return plainObject(value, { ...where, above: [...where.above, value] })
  } catch {
    return '[unreadable]'
  }
}

function plainObject(value: object, where: Where): unknown {
  if (Array.isArray(value)) return Array.from(value, (item) => plain(item, where))
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value instanceof Map) return Array.from(value, ([key, item]) => [plain(key, where), plain(item, where)])
  if (value instanceof Set) return Array.from(value, (item) => plain(item, where))
  if (isError(value)) return plainError(value, where)
  return plainEntries(Object.entries(value), where)
}

function plainError(error: Error, where: Where): unknown {
  const { name, message, stack, cause } = error
  const own = Object.entries(error).filter(([key]) => !['name', 'message', 'stack', 'cause'].includes(key))
  const traced = where.withStacks && typeof stack === 'string' ? [['stack', stack] as const] : []
  const text = plainEntries([['name', name], ['message', message], ...own, ...traced], where)
  return cause === undefined ? text : { ...text, cause: plain(cause, where) }
}

function plainEntries(entries: readonly (readonly [string, unknown])[], where: Where): object {
  // Not by assignment: a key may be `__proto__`.
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item, where)]))
}

/** A thrown value in one line: the message of an error, or any other value as JSON. */
export function messageOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && isError(error)) {
    const { name, message } = error
    return message === '' ? name : message
  }
  return typeof error === 'string' ? error : jsonLine(error)
}
