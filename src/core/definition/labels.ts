// Tags and metadata: labels by which users find a run, and facts about it. They are on the row in plain text, beside the
// payloads and outside of their codec, so they are small, and plain enough for every store and terminal.

import { exceedsUtf8 } from '../text/bytes.ts'
import { HoldfastError } from '../errors/error.ts'
import { atMost, digits, type Limits } from './limits.ts'
import { isPrintable } from '../text/printable.ts'
import { shown } from '../text/suggest.ts'

const longestTag = 200
const mostMetadataBytes = 16 * 1024

/** The tags, each once. Throws INVALID_NAME, or INVALID_OPTION at too many. */
export function checkTags(tags: unknown, what: string, limits: Pick<Limits, 'tags'>): readonly string[] {
  if (!Array.isArray(tags)) throw new HoldfastError('INVALID_OPTION', `${what} must be a list. Got ${shown(tags)}.`)
  if (tags.length === 0) return []
  const distinct = new Set<string>()
  for (const tag of tags as readonly unknown[]) {
    if (typeof tag !== 'string' || tag === '' || tag.length > longestTag || !isPrintable(tag)) {
      throw new HoldfastError(
        'INVALID_NAME',
        `${what} must be printable texts of 1 to ${longestTag} characters. Got ${shown(tag)}.`,
      )
    }
    distinct.add(tag)
    if (distinct.size > limits.tags) {
      throw new HoldfastError('INVALID_OPTION', `${what} are ${atMost(limits, 'tags')}. Got ${digits(tags.length)}.`)
    }
  }
  return [...distinct]
}

/** The text of a JSON object; null if it is empty. Throws INVALID_OPTION at a value that JSON would change. */
export function checkMetadata(metadata: unknown, what: string): string | null {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    throw new HoldfastError('INVALID_OPTION', `${what} must be an object. Got ${shown(metadata)}.`)
  }
  if (Object.keys(metadata).length === 0) return null
  assertPlain(metadata, what, 0)
  const text = JSON.stringify(metadata)
  if (!exceedsUtf8(text, mostMetadataBytes)) return text
  throw new HoldfastError(
    'INVALID_OPTION',
    `${what} may take ${mostMetadataBytes} bytes at most. Put more into the input.`,
  )
}

/** JSON would fill the holes of an array, and leave out its other properties. */
function isDense(list: readonly unknown[]): boolean {
  return Object.keys(list).every((key, at) => key === `${at}`) && Object.keys(list).length === list.length
}

/** No cycle gets past the bound on depth. */
function assertPlain(value: unknown, what: string, depth: number): void {
  if (value === null || typeof value === 'boolean') return
  if (typeof value === 'string') {
    if (!/\p{Surrogate}/u.test(value)) return
  } else if (typeof value === 'number') {
    if (Number.isFinite(value)) return
  } else if (typeof value === 'object' && depth < 20) {
    const prototype: unknown = Object.getPrototypeOf(value)
    const isPlain = prototype === Object.prototype || prototype === null
    if (Array.isArray(value) ? isDense(value) : isPlain) {
      for (const [name, member] of Object.entries(value)) {
        assertPlain(name, what, depth)
        assertPlain(member, what, depth + 1)
      }
      return
    }
  }
  throw new HoldfastError(
    'INVALID_OPTION',
    `${what} must be plain JSON: texts, finite numbers, booleans, null, lists and objects, 20 deep at most. ` +
      `Found ${shown(value)}.`,
  )
}
