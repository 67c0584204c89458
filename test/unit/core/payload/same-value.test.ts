// What counts as the same input under one key, and what does not.

import { describe, expect, it } from 'vitest'
import { isSameValue } from '../../../../src/core/payload/same-value.ts'
import { poison, throwing } from '../../../poison.ts'

function nested(depth: number, bottom: unknown): unknown {
  let value = bottom
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? { b: 1, inner: value } : [value]
  return value
}

describe('two values are the same', () => {
  it.each<[string, unknown, unknown]>([
    ['the keys of an object stand in another order', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }],
    [
      'a Map has its entries in another order',
      new Map([
        ['a', 1],
        ['b', 2],
      ]),
      new Map([
        ['b', 2],
        ['a', 1],
      ]),
    ],
    ['a Set has its members in another order', new Set([{ a: 1, b: 2 }, 'x']), new Set(['x', { b: 2, a: 1 }])],
    ['a key is __proto__', JSON.parse('{"__proto__":1,"a":2}'), JSON.parse('{"a":2,"__proto__":1}')],
    ['both are NaN', { n: Number.NaN }, { n: Number.NaN }],
    ['one has no prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
    ['one is stored as what the other is', { at: new URL('https://example.com/a') }, { at: 'https://example.com/a' }],
    ['errors were made at different places', { e: new RangeError('m') }, { e: new RangeError('m', {}) }],
  ])('when %s', (_, a, b) => {
    expect(isSameValue(a, b)).toBe(true)
    expect(isSameValue(b, a)).toBe(true)
  })

  it.each(poison.filter((one) => one.storable))('when both are $name', ({ value }) => {
    expect(isSameValue(value(), value())).toBe(true)
  })
})

describe('two values differ', () => {
  it.each<[string, unknown, unknown]>([
    ['in a value', { a: 1 }, { a: 2 }],
    ['in the order of an array', [1, 2], [2, 1]],
    ['in the type of a value', { a: 1 }, { a: '1' }],
    ['in the sign of zero', 0, -0],
    ['in a key that holds undefined', { a: undefined }, {}],
    ['in undefined and null', undefined, null],
    ['in being a Date', new Date(0), new Date(0).toISOString()],
    ['in being a Map', new Map([['a', 1]]), { a: 1 }],
    ['in being a tag', new Set([1, 2]), { $set: [1, 2] }],
    ['in the order of an array that looks like a tag', { $set: [1, 2] }, { $set: [2, 1] }],
    ['in the order of an array that is called $set among others', { $set: [1, 2], a: 1 }, { $set: [2, 1], a: 1 }],
    ['in a member of a Set', new Set([1, 2]), new Set([1, 3])],
    [
      'in what a Map gives for a key',
      new Map([
        ['a', 1],
        ['b', 2],
      ]),
      new Map([
        ['a', 2],
        ['b', 1],
      ]),
    ],
    ['in the message of an error', new Error('a'), new Error('b')],
    ['in the class of an error', new RangeError('a'), new TypeError('a')],
    ['in a property called stack', { stack: 'a' }, { stack: 'b' }],
    ['in how often something occurs', [1, 1], [1]],
    ['in where a text ends', ['a', 'b'], ['a,b']],
  ])('%s', (_, a, b) => {
    expect(isSameValue(a, b)).toBe(false)
    expect(isSameValue(b, a)).toBe(false)
  })

  it.each(poison.filter((one) => !one.storable))('when one is $name, which cannot be stored', ({ value }) => {
    expect(isSameValue(value(), { a: 1 })).toBe(false)
    expect(isSameValue({ a: 1 }, value())).toBe(false)
  })
})

describe('what cannot be stored', () => {
  it('is the same only as itself', () => {
    const one = { run: () => 1 }
    expect(isSameValue(one, one)).toBe(true)
    expect(isSameValue(one, { run: one.run })).toBe(false)
    const hostile = new Proxy({}, { get: throwing, ownKeys: throwing, getPrototypeOf: throwing })
    expect(isSameValue(hostile, {})).toBe(false)
    expect(isSameValue(hostile, hostile)).toBe(true)
  })
})

describe('depth', () => {
  it('is no danger to the stack: 1000 levels are compared, more are not', () => {
    expect(isSameValue(nested(1000, 'x'), nested(1000, 'x'))).toBe(true)
    expect(isSameValue(nested(1000, 'x'), nested(1000, 'y'))).toBe(false)
    expect(isSameValue(nested(1000, { a: 1, b: 2 }), nested(1000, { a: 1, b: 2 }))).toBe(false)
    expect(isSameValue(nested(100_000, 'x'), nested(100_000, 'x'))).toBe(false)
  })

  it('of 999 levels is compared regardless of the order at the bottom', () => {
    expect(isSameValue(nested(999, { a: 1, b: 2 }), nested(999, { b: 2, a: 1 }))).toBe(true)
  })
})

describe('size', () => {
  it('past the default limit of the codec is compared, too', () => {
    const large = 'x'.repeat(5_000_000)
    expect(isSameValue({ large, a: 1 }, { a: 1, large })).toBe(true)
    expect(isSameValue({ large, a: 1 }, { a: 1, large: `${large}x` })).toBe(false)
  })
})
