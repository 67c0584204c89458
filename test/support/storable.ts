// Values that the default codec stores, for properties of whatever moves them, and the equality that they must keep.

import { fc } from './properties.ts'
import { expect } from 'vitest'

const key = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    '$',
    '$$',
    '$date',
    '$$map',
    '$error',
    '$undefined',
    'then',
    'toJSON',
    '0',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
)

export const { storable } = fc.letrec<{ storable: unknown }>((tie) => ({
  storable: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ minLength: 40, maxLength: 60 }),
      fc.double(),
      fc.integer(),
      fc.constantFrom<unknown>(
        -0,
        Number.NaN,
        Infinity,
        -Infinity,
        undefined,
        null,
        true,
        false,
        '\uD800',
        '{"$set":[]}',
      ),
      fc.bigInt(),
      fc.date({ noInvalidDate: true }),
      fc.uint8Array(),
    ),
    fc.array(tie('storable'), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie('storable')), { maxLength: 4 }).map(objectOf),
    fc.tuple(key, tie('storable')).map((entry) => objectOf([entry])),
    fc.array(fc.tuple(tie('storable'), tie('storable')), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie('storable'), { maxLength: 3 }).map((members) => new Set(members)),
  ),
}))

/** An object with these own keys, `__proto__` among them. */
export function objectOf(entries: readonly (readonly [string, unknown])[]): unknown {
  const object = {}
  for (const [name, value] of entries) {
    Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true })
  }
  return object
}

/** Stricter than toEqual: the sign of zero, prototypes, own keys and their order. */
export function expectSame(actual: unknown, expected: unknown): void {
  if (typeof expected !== 'object' || expected === null) {
    expect(Object.is(actual, expected)).toBe(true)
    return
  }
  expect(Object.getPrototypeOf(actual)).toBe(Object.getPrototypeOf(expected))
  if (expected instanceof Date) expect((actual as Date).getTime()).toBe(expected.getTime())
  else if (expected instanceof Map) expectSame([...(actual as Map<unknown, unknown>)], [...expected])
  else if (expected instanceof Set) expectSame([...(actual as Set<unknown>)], [...expected])
  else {
    expect(Reflect.ownKeys(actual as object)).toEqual(Reflect.ownKeys(expected))
    for (const name of Reflect.ownKeys(expected)) {
      expectSame((actual as Record<PropertyKey, unknown>)[name], (expected as Record<PropertyKey, unknown>)[name])
    }
  }
}
