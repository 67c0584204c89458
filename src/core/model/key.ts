// Business keys: the name by which the application knows a run. A key is unique in its scope among live runs; this file
// decides, once for every store, which runs with the same key conflict.

import { HoldfastError } from '../errors/error.ts'
import { isPrintable } from '../text/printable.ts'
import { didYouMean, shown } from '../text/suggest.ts'

/**
 * Among which live runs a business key is unique: those of its `workflow`, those of its workflow's `version`, all of them
 * (`global`), or `none`: then it is only a name to search by.
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

/** The text that must be unique among live runs; null if the run has no key, or one that other runs may share. */
export function uniqueText(run: {
  readonly key: string | null
  readonly keyScope: KeyScope
  readonly type: string
  readonly version: number
}): string | null {
  const { key, keyScope, type, version } = run
  if (key === null) return null
  // A type has no space, so these texts are unambiguous.
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

/** Refuses keys that could not be stored, shown or distinguished. */
export function checkKey(key: unknown, what: string): string {
  if (typeof key === 'string' && key !== '' && key.length <= longestKey && isPrintable(key)) return key
  throw new HoldfastError(
    'INVALID_NAME',
    `${what} must be printable text of 1 to ${longestKey} characters. Got ${shown(key)}.`,
    { details: { what } },
  )
}

const separator = '::'

/** The key of a run that is unique by a field of its input: `orderId::42`. */
export function compositeKey(field: string, value: string): string {
  return checkKey(field + separator + value, 'The key of a run')
}

/** Whether a key names the field that its value is of. */
export function isComposite(key: string): boolean {
  return key.includes(separator)
}

/** The value of a composite key: `42` of `orderId::42`. */
export function compositeValue(key: string): string {
  const at = key.indexOf(separator)
  return at === -1 ? key : key.slice(at + separator.length)
}

/** The name of a field that keys are made of. The separator is refused, so that every key has one value. */
export function checkKeyField(field: unknown, where: string): string {
  const isName = typeof field === 'string' && field !== '' && field.length <= 200 && isPrintable(field)
  if (isName && !field.includes(separator)) return field
  throw new HoldfastError(
    'INVALID_NAME',
    `unique.key of ${where} must be a function, or the name of a field of the input: printable text of 1 to 200 characters ` +
      `without "${separator}". Got ${shown(field)}.`,
  )
}
