// Business keys: what they are made of, and which runs they keep apart.

import { describe, expect, it } from 'vitest'
import {
  checkKey,
  checkKeyField,
  compositeKey,
  compositeValue,
  keyScopes,
  longestKey,
  uniqueText,
} from '../../../../src/core/model/key.ts'

const uuid = '018f4e1c-9b7a-7c3d-8e5f-0123456789ab'
const invalidName = expect.objectContaining({ code: 'INVALID_NAME' }) as unknown as Error

describe('a composite key', () => {
  it.each([
    ['42', 'orderId::42'],
    ['a b', 'orderId::a b'],
    ['a::b', 'orderId::a::b'],
    [uuid, `orderId::${uuid}`],
  ])('HE-U1 is the field and the value %s, and the value comes back', (value, key) => {
    expect(compositeKey('orderId', value)).toBe(key)
    expect(compositeValue(key)).toBe(value)
  })

  it('HE-U1 refuses a value that no key can have', () => {
    for (const value of ['a\n', 'a'.repeat(longestKey)])
      expect(() => compositeKey('orderId', value)).toThrow(invalidName)
  })

  it.each(['orderId', 'order_id', 'order id', 'é', '7'])('HE-U1 takes the field %j', (field) => {
    expect(checkKeyField(field, 'workflow "a"')).toBe(field)
  })

  it.each(['', 'order::id', 'a\n', 'a'.repeat(201), undefined, null, 7])('HE-U1 refuses the field %j', (field) => {
    expect(() => checkKeyField(field, 'workflow "a"')).toThrow(invalidName)
  })

  it('is not what a key without a separator is: that is its own value', () => {
    expect(compositeValue('plain')).toBe('plain')
    expect(compositeValue('a::b::c')).toBe('b::c')
  })
})

describe('the scope of a key', () => {
  const run = { key: 'order-7', keyScope: 'workflow', type: 'billing', version: 1 } as const

  it('HE-U2 workflow: is in the way of the same workflow in any version, and of no other', () => {
    expect(uniqueText({ ...run, version: 2 })).toBe(uniqueText(run))
    expect(uniqueText({ ...run, type: 'shipping' })).not.toBe(uniqueText(run))
  })

  it('HE-U2 version: is in the way of the same version only', () => {
    const versioned = { ...run, keyScope: 'version' } as const
    expect(uniqueText({ ...versioned })).toBe(uniqueText(versioned))
    expect(uniqueText({ ...versioned, version: 2 })).not.toBe(uniqueText(versioned))
    expect(uniqueText({ ...versioned, type: 'shipping' })).not.toBe(uniqueText(versioned))
  })

  it('HE-U2 global: is in the way of every workflow', () => {
    const global = { ...run, keyScope: 'global' } as const
    expect(uniqueText({ ...global, type: 'shipping', version: 9 })).toBe(uniqueText(global))
    expect(uniqueText({ ...global, key: 'order-8' })).not.toBe(uniqueText(global))
  })

  it('HE-U2 none: is in nobody’s way', () => {
    expect(uniqueText({ ...run, keyScope: 'none' })).toBeNull()
  })

  it.each(keyScopes)('HE-U2 %s: a run without a key is in nobody’s way', (keyScope) => {
    expect(uniqueText({ ...run, keyScope, key: null })).toBeNull()
  })
})

describe('a key', () => {
  it.each(['a', 'order 7', "'; DROP TABLE run; --", '../../etc', '👩‍👩‍👧', 'x'.repeat(longestKey)])('may be %j', (key) => {
    expect(checkKey(key, 'key')).toBe(key)
  })

  it.each<unknown>(['', 'x'.repeat(longestKey + 1), 'a\u0000', 'a\nb', '\uD800', '\u2028', 7, null, undefined, {}])(
    'may not be %j',
    (key) => {
      expect(() => checkKey(key, 'idempotencyKey')).toThrow(invalidName)
      expect(() => checkKey(key, 'idempotencyKey')).toThrow(/^idempotencyKey must be printable text/)
    },
  )
})
