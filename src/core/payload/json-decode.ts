// Reads what json-encode wrote. Only the closed set of tags is revived; anything else that looks like a tag, is too
// deep or is not JSON is refused, because a payload that is half understood is worse than none.
// Objects are made by `JSON.parse` and changed in place, so a key `__proto__` stays an own key.

import { fromBase64 } from '../text/bytes.ts'
import { rebuildError, type ErrorClasses } from './error-data.ts'
import { undefinedText } from './json-text.ts'

/** The greatest depth that a codec can be configured to accept: a walk that deep is safe on any stack. */
export const deepest = 1000

/** The most digits of a bigint that a codec can be configured to accept. 10⁵ are written in 15 ms, and 10⁷ in 15 s. */
export const mostBigintDigits = 100_000

// The text of any codec is read, regardless of the options of this one. The innermost Map or error adds three brackets.
const deepestText = deepest + 3

/** Why a text was refused. */
export class UnreadableJson extends Error {}

export function decodeJson(text: string, classes: ErrorClasses): unknown {
  if (text === undefinedText) return undefined
  if (isDeeperThan(text, deepestText)) throw new UnreadableJson('it is nested too deep')
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) return value
  // A tag starts with `$`, be it written as an escape.
  if (!text.includes('"$') && !text.includes('"\\u')) return value
  return revive(value, classes)
}

/**
 * Whether a text opens more brackets at once than these: asked before it is parsed, because a parser may recurse. Of a
 * text that is not JSON the answer may be wrong; the parser refuses it.
 */
export function isDeeperThan(text: string, most: number): boolean {
  // A deeper text closes all its brackets and so is longer, or it is no JSON.
  if (text.length <= 2 * most) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfString(text, at)
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > most) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

/** Finds quotes natively, because a result may be one text of a megabyte. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = at
    while (escapes > start + 1 && text.charCodeAt(escapes - 1) === 0x5c) escapes--
    // A quote is escaped by the last of an odd number of backslashes.
    if ((at - escapes) % 2 === 0) return at
  }
  return text.length
}

function revive(value: unknown, classes: ErrorClasses): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) value[at] = revive(value[at], classes)
    return value
  }
  const object = value as Record<string, unknown>
  const keys = Object.keys(object)
  const [first] = keys
  if (first !== undefined && keys.length === 1 && first.charCodeAt(0) === 36) {
    if (first.charCodeAt(1) === 36) return { [first.slice(1)]: revive(object[first], classes) }
    return reviveTag(first, object[first], classes)
  }
  // Each key is an own data property already, so writing to `__proto__` reaches no setter.
  for (const key of keys) object[key] = revive(object[key], classes)
  return object
}

function reviveTag(tag: string, content: unknown, classes: ErrorClasses): unknown {
  switch (tag) {
    case '$undefined':
      if (content === true) return undefined
      break
    case '$number':
      if (content === 'NaN' || content === 'Infinity' || content === '-Infinity' || content === '-0') {
        return Number(content)
      }
      break
    case '$bigint':
      if (typeof content === 'string') return reviveBigint(content)
      break
    case '$date':
      return reviveDate(content)
    case '$bytes': {
      const bytes = typeof content === 'string' ? fromBase64(content) : undefined
      if (bytes !== undefined) return bytes
      break
    }
    case '$map':
      return reviveMap(content, classes)
    case '$set':
      if (Array.isArray(content)) return new Set(revive(content, classes) as unknown[])
      break
    case '$error':
      return reviveError(content, classes)
    default:
      throw new UnreadableJson('it has a tag that this version does not know')
  }
  throw malformed(tag)
}

function reviveBigint(content: string): bigint {
  // A sign takes one character more; a number that long without one is one digit too many, and read all the same.
  if (content.length > mostBigintDigits + 1)
    throw new UnreadableJson(`it has a bigint of over ${mostBigintDigits} digits`)
  if (!/^(?:0|-?[1-9][0-9]*)$/.test(content)) throw malformed('$bigint')
  return BigInt(content)
}

function reviveDate(content: unknown): Date {
  if (typeof content !== 'string') throw malformed('$date')
  const date = new Date(content)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== content) throw malformed('$date')
  return date
}

function reviveMap(content: unknown, classes: ErrorClasses): Map<unknown, unknown> {
  if (!Array.isArray(content)) throw malformed('$map')
  const map = new Map<unknown, unknown>()
  for (const pair of content as unknown[]) {
    if (!Array.isArray(pair) || pair.length !== 2) throw malformed('$map')
    map.set(revive(pair[0], classes), revive(pair[1], classes))
  }
  return map
}

function reviveError(content: unknown, classes: ErrorClasses): Error {
  if (!isRecord(content)) throw malformed('$error')
  const { name, message, stack, cause, errors, props = {}, class: chain = [name] } = content
  const isSound =
    typeof name === 'string' &&
    typeof message === 'string' &&
    (stack === undefined || typeof stack === 'string') &&
    (errors === undefined || Array.isArray(errors)) &&
    isRecord(props) &&
    Array.isArray(chain) &&
    chain.every((one) => typeof one === 'string')
  if (!isSound) throw malformed('$error')
  for (const key of Object.keys(props)) props[key] = revive(props[key], classes)
  return rebuildError(
    {
      name,
      message,
      classes: chain,
      props,
      ...(stack === undefined ? {} : { stack }),
      ...(errors === undefined ? {} : { errors: revive(errors, classes) as unknown[] }),
      ...('cause' in content ? { cause: revive(cause, classes) } : {}),
    },
    classes,
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function malformed(tag: string): UnreadableJson {
  return new UnreadableJson(`the value of its tag ${tag} is malformed`)
}
