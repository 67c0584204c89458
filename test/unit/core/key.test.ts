// Business keys: what they are made of, and which runs they keep apart.

import { describe, expect, it } from 'vitest'
import {
  checkKey,
  checkKeyName,
  compositeKey,
  compositeValue,
  keyScopes,
  longestKey,
  uniqueText,
} from '../../../src/core/key.ts'

const uuid = '018f4e1c-9b7a-7c3d-8e5f-0123456789ab'
const invalidName = expect.objectContaining({ code: 'INVALID_NAME' }) as unknown as Error

describe('a composite key', () => {
  it.each([
    ['42', 'orderid::42'],
    ['a1b2', 'orderid::a1b2'],
    [uuid, `orderid::${uuid}`],
  ])('HE-U1 is the name and the value %s, and the value comes back', (value, key) => {
    expect(compositeKey('orderid', value)).toBe(key)
    expect(compositeValue(key)).toBe(value)
  })

  it.each<[string, unknown]>([
    ['an empty value', ''],
    ['a large letter', 'A1'],
    ['a separator', 'a::b'],
    ['half a separator', 'a:b'],
    ['a space', 'a b'],
    ['a line break at the end', 'a\n'],
    ['a dash outside a UUID', 'a-b'],
    ['a UUID in large letters', uuid.toUpperCase()],
    ['a UUID and more', `${uuid}0`],
    ['a digit of another script', '٤٢'],
    ['a letter with an accent', 'é'],
    ['201 characters', 'a'.repeat(201)],
    ['a number', 42],
    ['nothing', undefined],
    ['null', null],
    ['an object that would print well', { toString: () => 'a' }],
  ])('HE-U1 refuses %s', (_, value) => {
    expect(() => compositeKey('orderid', value)).toThrow(invalidName)
  })

  it.each(['', 'orderId', 'order_id', 'order::id', 'order id', 'é', 'a'.repeat(201), undefined, null, 7])(
    'HE-U1 refuses the name %j',
    (name) => {
      expect(() => checkKeyName(name)).toThrow(invalidName)
      expect(() => compositeKey(name as string, '42')).toThrow(invalidName)
    },
  )

  it('HE-U1 is refused with a message that names the key and shows what was given', () => {
    expect(() => compositeKey('orderid', 'Order 7')).toThrow(/unique by "orderid".*"Order 7"/)
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
