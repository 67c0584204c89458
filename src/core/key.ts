// Business keys: the name by which the world outside knows a run. A key is unique in its scope among live runs; which of
// two runs with the same key are in each other's way is decided here, once, for every store.

import { HoldfastError } from './error.ts'
import { isPrintable } from './printable.ts'
import { didYouMean, shown } from './suggest.ts'

/**
 * Among which live runs a business key is unique: those of its `workflow`, those of its workflow's `version`, all of them
 * (`global`), or `none`: then it is only a name to be found by.
 */
export type KeyScope = (typeof keyScopes)[number]

export const keyScopes = ['workflow', 'version', 'global', 'none'] as const

export const longestKey = 400

export function checkScope(scope: unknown, what: string): KeyScope {
  if (keyScopes.includes(scope as KeyScope)) return scope as KeyScope
  throw new HoldfastError(
    'INVALID_OPTION',
    `${what} is one of ${keyScopes.join(', ')}. Got ${shown(scope)}.${didYouMean(scope, keyScopes)}`,
  )
}

/** The text that must be unique among live runs; null if the run has no key, or one that anybody may share. */
export function uniqueText(run: {
  readonly key: string | null
  readonly keyScope: KeyScope
  readonly type: string
  readonly version: number
}): string | null {
  const { key, keyScope, type, version } = run
  if (key === null) return null
  // A type has no space, so that no two of these texts mean different things.
  switch (keyScope) {
    case 'workflow':
      return `workflow ${type} ${key}`
    case 'version':
      return `version ${type} ${version} ${key}`
    case 'global':
      return `global ${key}`
    case 'none':
      return null
  }
}

/** Refuses keys that could not be stored, shown or told apart. */
export function checkKey(key: unknown, what: string): string {
  if (typeof key === 'string' && key !== '' && key.length <= longestKey && isPrintable(key)) return key
  throw new HoldfastError(
    'INVALID_NAME',
    `${what} must be printable text of 1 to ${longestKey} characters. Got ${shown(key)}.`,
    { details: { what } },
  )
}

const separator = '::'

/**
 * The key of a run of a workflow that says what its runs are about: `orderid::42`. The name is of small letters and digits,
 * the value too, or a UUID in lower case.
 */
export function compositeKey(name: string, value: unknown): string {
  if (typeof value === 'string' && (isPlain(value) || uuid.test(value))) return checkKeyName(name) + separator + value
  throw new HoldfastError(
    'INVALID_NAME',
    `The key of a run that is unique by "${name}" must be of small letters and digits, or a UUID in lower case. ` +
      `Got ${shown(value)}.`,
    { details: { name } },
  )
}

/** The value of a composite key: `42` of `orderid::42`. */
export function compositeValue(key: string): string {
  const at = key.indexOf(separator)
  return at === -1 ? key : key.slice(at + separator.length)
}

export function checkKeyName(name: unknown): string {
  if (typeof name === 'string' && isPlain(name)) return name
  throw new HoldfastError(
    'INVALID_NAME',
    `unique.key must be a name of small letters and digits, such as "orderid". Got ${shown(name)}.`,
  )
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

function isPlain(text: string): boolean {
  return text.length <= 200 && /^[a-z0-9]+$/.test(text)
}
