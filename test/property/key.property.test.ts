import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { checkKey, compositeKey, compositeValue, keyScopes, longestKey, uniqueText } from '../../src/core/model/key.ts'
import { isPrintable } from '../../src/core/text/printable.ts'

/** Keys that try to look like another scope, type or version. */
const nastyKey = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b', '1', ' ', ':', 'workflow', 'version', 'global', 'a 1 '), maxLength: 6 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
const type = fc.string({ unit: fc.constantFrom('a', 'b', '1', ':', '.', '-'), minLength: 1, maxLength: 3 })
const run = fc.record({
  key: nastyKey,
  keyScope: fc.constantFrom(...keyScopes),
  type,
  version: fc.integer({ min: 1, max: 3 }),
})
type KeyedRun = ReturnType<(typeof run)['generate']>['value']

/** What the scopes promise, said without text. */
function areInEachOthersWay(a: KeyedRun, b: KeyedRun): boolean {
  if (a.keyScope !== b.keyScope || a.keyScope === 'none' || a.key !== b.key) return false
  if (a.keyScope === 'global') return true
  return a.type === b.type && (a.keyScope === 'workflow' || a.version === b.version)
}

describe('the text of a key in its scope', () => {
  it('HE-U2 is the same for those runs that are in each other’s way, whatever the keys look like', () => {
    const close = fc.tuple(run, run).chain(([a, b]) =>
      fc.record({
        a: fc.constant(a),
        b: fc.record({
          key: fc.constantFrom(a.key, b.key, `${a.type} ${a.key}`, `${a.type} ${a.version} ${a.key}`),
          keyScope: fc.constantFrom(a.keyScope, b.keyScope),
          type: fc.constantFrom(a.type, b.type),
          version: fc.constantFrom(a.version, b.version),
        }),
      }),
    )
    fc.assert(
      fc.property(close, ({ a, b }) => {
        const text = uniqueText(a)
        expect(text !== null && text === uniqueText(b)).toBe(areInEachOthersWay(a, b))
      }),
      { numRuns: 5000 },
    )
  })
})

describe('a composite key', () => {
  const field = fc.stringMatching(/^[A-Za-z0-9_]{1,20}$/)
  const text = fc.stringMatching(/^[A-Za-z0-9: -]{1,20}$/)

  it('HE-U1 gives its value back, can be stored, and is another one for another field or value', () => {
    const pair = fc.tuple(field, fc.oneof(text, fc.uuid()))
    fc.assert(
      fc.property(pair, pair, ([name, value], [otherName, otherValue]) => {
        const key = compositeKey(name, value)
        expect(compositeValue(key)).toBe(value)
        expect(checkKey(key, 'key')).toBe(key)
        expect(key === compositeKey(otherName, otherValue)).toBe(name === otherName && value === otherValue)
      }),
    )
  })
})

describe('a key that is accepted', () => {
  it('survives UTF-8 and stands on one line', () => {
    fc.assert(
      fc.property(fc.oneof(nastyKey, fc.string({ unit: 'binary', maxLength: 2 * longestKey })), (key) => {
        if (key === '' || key.length > longestKey || !isPrintable(key)) {
          expect(() => checkKey(key, 'key')).toThrow(/must be printable text/)
          return
        }
        expect(Buffer.from(checkKey(key, 'key')).toString()).toBe(key)
        expect(key).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u)
      }),
      { numRuns: 1000 },
    )
  })
})
