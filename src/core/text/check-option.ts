// Checks of options by their kind. Each refuses a value that was given and is of another kind: INVALID_OPTION, with the option,
// what it must be, and the value. An option that is left out is not checked.

import { HoldfastError } from '../errors/error.ts'
import { shown } from './suggest.ts'

/** The error of an option, named as its author writes it: `createHoldfast({ migrate })`. */
export function wrongOption(option: string, must: string, given: unknown): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${option} must be ${must}. Got ${shown(given)}.`, { details: { option } })
}

export function checkBoolean(given: unknown, option: string): void {
  if (given !== undefined && typeof given !== 'boolean') throw wrongOption(option, 'true or false', given)
}

/** `like` is an example of such a function. */
export function checkFunction(given: unknown, option: string, like: string): void {
  if (given !== undefined && typeof given !== 'function')
    throw wrongOption(option, `a function, such as ${like}`, given)
}

/** An object that others call: it has these methods, its own or inherited. */
export function checkMethods(given: unknown, option: string, methods: readonly string[]): void {
  if (given === undefined) return
  const isObject = (typeof given === 'object' && given !== null) || typeof given === 'function'
  const missing = methods.filter((name) => !isObject || typeof (given as Record<string, unknown>)[name] !== 'function')
  if (missing.length === 0) return
  const lacks = isObject ? `; it lacks ${missing.join(', ')}` : ''
  throw wrongOption(option, `an object with the methods ${methods.join(', ')}${lacks}`, given)
}
