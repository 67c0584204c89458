// The data subjects of payloads: people, say, who may ask that all that is known of them is erased. A payload that names one is
// encrypted under a key that needs both the current key of the codec and the subject's own. When the subject's key is destroyed,
// no other key opens what is left of it, in whatever copy of the database.

import { createHmac } from 'node:crypto'
import { HoldfastError, messageOf } from '../core/errors/error.ts'
import type { Place } from '../core/payload/place.ts'
import { isPrintable } from '../core/text/printable.ts'
import { checkOptions, isPlainObject, shown } from '../core/text/suggest.ts'

/** Where the keys of data subjects are. Its methods are synchronous: they are called for each payload. */
export interface SubjectKeys {
  /** The key of a subject, 32 bytes, made if it has none yet; null once it was destroyed, for good. */
  forSubject(id: string): Uint8Array | null
}

export interface SubjectOptions {
  /**
   * The id of the subject that a payload is about; null if it is about none. It is called with whatever is stored: inputs, events,
   * effects, states, results, errors. The id stands in the database in plain text, so use one that says nothing.
   */
  readonly of: (value: unknown, place: Place) => string | null | undefined
  readonly keys: SubjectKeys
}

const keyBytes = 32
const longestId = 200

export class Subjects {
  private readonly options: SubjectOptions

  constructor(options: SubjectOptions) {
    this.options = options
  }

  /** The subject of a value; null if it has none. Throws NOT_STORABLE if it has several. */
  of(value: unknown, place: Place): string | null {
    const ids = new Set<string>()
    for (const part of place.kind === 'snapshot' ? partsOf(value) : [value]) {
      const id = this.idOf(part, place)
      if (id !== null) ids.add(id)
    }
    const [id = null, ...others] = ids
    if (others.length === 0) return id
    throw notStorable(`it is about ${ids.size} data subjects, and could not be erased for one of them alone`)
  }

  /** The key of a text of that subject, under that key of the codec; null if the subject was erased. */
  key(id: string, codecKey: Uint8Array): Uint8Array | null {
    const own: unknown = this.options.keys.forSubject(id)
    if (own === null) return null
    if (own instanceof Uint8Array && own.length === keyBytes) return createHmac('sha256', codecKey).update(own).digest()
    throw new HoldfastError('INVALID_OPTION', `subjects.keys.forSubject() must return ${keyBytes} bytes, or null.`)
  }

  private idOf(value: unknown, place: Place): string | null {
    let id: unknown
    try {
      id = this.options.of(value, place) ?? null
    } catch (error) {
      throw notStorable(`subjects.of of encryptingCodec() threw: ${messageOf(error)}`)
    }
    if (id === null) return null
    if (typeof id === 'string' && id !== '' && id.length <= longestId && isPrintable(id)) return id
    throw notStorable(
      `subjects.of of encryptingCodec() must return an id of at most ${longestId} printable characters, or null`,
    )
  }
}

/** Throws INVALID_OPTION. */
export function subjectsOf(given: SubjectOptions | undefined): Subjects | null {
  if (given === undefined) return null
  checkOptions(given, ['of', 'keys'], '`subjects` of encryptingCodec()')
  const { of, keys } = given as { readonly of?: unknown; readonly keys?: Partial<SubjectKeys> }
  if (typeof of === 'function' && typeof keys?.forSubject === 'function') return new Subjects(given)
  throw new HoldfastError(
    'INVALID_OPTION',
    `\`subjects\` of encryptingCodec() must have of: (value) => id or null, and keys with forSubject(id). Got ${shown(of)}.`,
  )
}

/** A snapshot of an instance holds its state, and the timers and effects that are pending. */
function partsOf(snapshot: unknown): readonly unknown[] {
  if (!isPlainObject(snapshot)) return [snapshot]
  const { state, timers, effects, dead } = snapshot as Readonly<Record<string, unknown>>
  const inputs = listOf(timers).map((timer) => (timer as { readonly input?: unknown }).input)
  const asked = [...listOf(effects), ...listOf(dead)].map((effect) => (effect as readonly unknown[])[3])
  return [state, ...inputs, ...asked]
}

function listOf(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? given : []
}

function notStorable(why: string): HoldfastError {
  return new HoldfastError('NOT_STORABLE', `The value at $ cannot be stored: ${why}.`, {
    details: { path: '$', reason: 'subject' },
  })
}
