// Freezes what pure functions are given: a state or an event that one of them changed would be another one here than in every
// other process. Only plain objects and arrays: what has a class of its own is its author's.
//
// What is frozen already is not entered, so a state that shares most of its parts with the one before costs what is new in it.
// A long array is neither frozen nor entered: that would cost more than deciding an input does.

const longest = 16

/** Throws nothing. Returns the same value. */
export function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) freeze(value)
  return value
}

function freeze(value: object): void {
  if (Object.isFrozen(value)) return
  if (Array.isArray(value)) {
    if (value.length > longest) return
  } else {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) return
  }
  Object.freeze(value)
  for (const key in value) {
    const part: unknown = (value as Readonly<Record<string, unknown>>)[key]
    if (typeof part === 'object' && part !== null) freeze(part)
  }
}
