// Whether two values are the same when stored: the same idempotency key with the same input is a repetition, with another one
// a conflict. Values are compared by the text that a codec gives them, brought into one form: neither the order of an
// object's keys counts, nor that of a Map's entries or a Set's members, nor the stack of an error, which says where it was
// made. Everything else does: 0 and -0 differ, and a key that holds undefined is not a missing key. The depth that the codec
// allows bounds every walk here.

import { jsonCodec } from './codec.ts'
import { deepest, mostBigintDigits } from './json-decode.ts'
import { nowhere } from './place.ts'

// Eight times the default. A graph that unfolds without end takes about 0.2 s per MiB until it is refused.
const codec = jsonCodec({ maxDepth: deepest, maxBytes: 8 * 1024 * 1024, maxBigintDigits: mostBigintDigits })

/**
 * Whether two values are stored as the same. A value that the default codec cannot store, in 8 MiB at most, is the same
 * only as itself. A value that was read back is to be compared with one that went through the same codec. Never throws.
 */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  try {
    const first = codec.encode(a, nowhere)
    const second = codec.encode(b, nowhere)
    return isSameText(first, second)
  } catch {
    return false
  }
}

/**
 * A text that values share exactly if they are stored as the same; null for a value that the default codec cannot store, in
 * 8 MiB at most. Never throws.
 */
export function canonicalText(value: unknown): string | null {
  try {
    return canonical(JSON.parse(codec.encode(value, nowhere)))
  } catch {
    return null
  }
}

/** Whether two texts are the same, or JSON that says the same in another order. Never throws. */
export function isSameText(a: string, b: string): boolean {
  if (a === b) return true
  try {
    return canonical(JSON.parse(a)) === canonical(JSON.parse(b))
  } catch {
    return false
  }
}

/** A text that equal values share. It works on the parsed JSON, so tags are distinguished from data that looks like them. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const object = value as Record<string, unknown>
  const keys = Object.keys(object)
  if (keys.length === 1) {
    // A lone key of data that begins with `$` is escaped, so these are tags.
    const { $map: entries, $set: members, $error: error } = object
    if (Array.isArray(entries)) return `{"$map":${unordered(entries)}}`
    if (Array.isArray(members)) return `{"$set":${unordered(members)}}`
    if (typeof error === 'object' && error !== null) {
      return `{"$error":${fields(error as Record<string, unknown>, (key) => key !== 'stack')}}`
    }
  }
  return fields(object, () => true)
}

function unordered(items: readonly unknown[]): string {
  return `[${items.map(canonical).sort().join(',')}]`
}

function fields(object: Record<string, unknown>, counts: (key: string) => boolean): string {
  const keys = Object.keys(object).filter(counts).sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(object[key])}`).join(',')}}`
}
