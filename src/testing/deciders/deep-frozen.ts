// Freezes plain data through and through, so that code that changes what it was given throws.

import { isPlainObject } from '../../core/text/suggest.ts'

/** The same value, with all of its plain objects and arrays frozen. */
export function deepFrozen<Value>(value: Value, seen: Set<object> = new Set()): Value {
  if (!(Array.isArray(value) || isPlainObject(value)) || seen.has(value)) return value
  seen.add(value)
  for (const one of Object.values(value)) deepFrozen(one as unknown, seen)
  return Object.freeze(value)
}
