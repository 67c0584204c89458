import { isDeepStrictEqual } from 'node:util'
import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { jsonCodec, type Place } from '../../src/core/payload/codec.ts'
import { isSameValue } from '../../src/core/payload/same-value.ts'
import { objectOf, storable } from '../support/storable.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 1, kind: 'step-succeeded', name: null, id: null }
const codec = jsonCodec()

/** The same value, with everything that has no order turned round. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned)
  if (value instanceof Map) return new Map([...value].toReversed().map(([key, item]) => [turned(key), turned(item)]))
  if (value instanceof Set) return new Set([...value].toReversed().map(turned))
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array) return value
  const entries = Object.entries(value).toReversed()
  return objectOf(entries.map(([key, item]) => [key, turned(item)]))
}

/** Few values, so that two of them are often equal. */
const { small } = fc.letrec<{ small: unknown }>((tie) => ({
  small: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<unknown>(0, -0, 1, '1', '$set', null, undefined, Number.NaN),
    fc.array(tie('small'), { maxLength: 2 }),
    fc.array(fc.tuple(fc.constantFrom('a', 'b', '$set', '$map'), tie('small')), { maxLength: 2 }).map(objectOf),
    fc.array(tie('small'), { maxLength: 2 }).map((members) => new Set(members)),
    fc.array(fc.tuple(tie('small'), tie('small')), { maxLength: 2 }).map((entries) => new Map(entries)),
  ),
}))

describe('the same value', () => {
  it('is one that was stored and read, and one whose parts stand in another order', () => {
    fc.assert(
      fc.property(storable, (value) => {
        expect(isSameValue(value, codec.decode(codec.encode(value, place), place))).toBe(true)
        expect(isSameValue(turned(value), value)).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  it('is what Node calls deeply and strictly equal', () => {
    fc.assert(
      fc.property(small, small, (a, b) => {
        expect(isSameValue(a, b)).toBe(isDeepStrictEqual(a, b))
      }),
      { numRuns: 5000 },
    )
  })

  it('throws nothing, whatever is compared, and asks in either order alike', () => {
    fc.assert(
      fc.property(fc.anything({ withSparseArray: true, withTypedArray: true }), fc.anything(), (a, b) => {
        expect(isSameValue(a, b)).toBe(isSameValue(b, a))
        expect(isSameValue(a, a)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})
