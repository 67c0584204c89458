// The default codec: what it writes, refuses and reads.

import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { jsonCodec, type Codec, type Place } from '../../../../src/core/payload/codec.ts'
import { HoldfastError, isHoldfastError } from '../../../../src/core/errors/error.ts'
import { Decimal, Money, poison } from '../../../poison.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 3, kind: 'step-succeeded', name: 'charge', id: null }
const codec = jsonCodec()

function roundTrip(value: unknown, with_: Codec = codec): unknown {
  return with_.decode(with_.encode(value, place), place)
}

function refusal(value: unknown, with_: Codec = codec): HoldfastError {
  try {
    with_.encode(value, place)
  } catch (error) {
    if (isHoldfastError(error, 'NOT_STORABLE')) return error
    throw error
  }
  throw new Error('it was accepted')
}

function corruption(text: string): HoldfastError {
  try {
    codec.decode(text, place)
  } catch (error) {
    if (isHoldfastError(error, 'PAYLOAD_CORRUPT')) return error
    throw error
  }
  throw new Error(`it was accepted: ${text.slice(0, 80)}`)
}

describe('a bigint of ten million digits', () => {
  // Nobody writes its decimal text here: that alone takes many seconds.
  const huge = 1n << 33_219_281n

  it.each([
    ['by itself', huge, '$'],
    ['below zero', -huge, '$'],
    ['somewhere inside', { a: [1n, huge] }, '$.a[1]'],
  ])('%s is refused before its text is made, with the number and the option', (_, value, path) => {
    const { message, details } = refusal(value)
    expect(message).toBe(
      `The value at ${path} cannot be stored: it is a bigint of more than 10000 digits. ` +
        'Store its bytes, or raise maxBigintDigits of the codec.',
    )
    expect(details).toMatchObject({ reason: 'too-large' })
  })

  it('is left out of an error that has it, as whatever cannot be stored', () => {
    const thrown = Object.assign(new Error('overflow'), { exact: huge, code: 7 })
    expect(roundTrip(thrown)).toMatchObject({ message: 'overflow', code: 7 })
    expect(roundTrip(thrown)).not.toHaveProperty('exact')
  })

  it('that an intruder wrote into a row is not parsed', () => {
    expect(corruption(`{"$bigint":"${'9'.repeat(10_000_000)}"}`).message).toContain('a bigint of over 100000 digits')
    expect(corruption(`[{"$bigint":"-${'x'.repeat(10_000_000)}"}]`).message).toContain('over 100000 digits')
  })

  it('is measured to the digit, and what a codec with another bound wrote is read', () => {
    const short = jsonCodec({ maxBigintDigits: 3 })
    for (const fits of [999n, -999n, 0n]) expect(roundTrip(fits, short)).toBe(fits)
    for (const digit of [1000n, -1000n]) expect(refusal(digit, short).message).toContain('more than 3 digits')
    const longest = 10n ** 100_000n - 1n
    const wide = jsonCodec({ maxBigintDigits: 100_000 })
    for (const one of [longest, -longest]) expect(short.decode(wide.encode(one, place), place)).toBe(one)
  })

  it.each([0, 1.5, 100_001, '10' as never])('a bound of %s digits is refused', (maxBigintDigits) => {
    expect(() => jsonCodec({ maxBigintDigits })).toThrow('maxBigintDigits must be a whole number from 1 to 100000.')
  })
})

describe('the text', () => {
  it.each<[unknown, string]>([
    [{ orderId: '42', total: 99 }, '{"orderId":"42","total":99}'],
    [[1, 'a"b', true, null], '[1,"a\\"b",true,null]'],
    [{}, '{}'],
    [[], '[]'],
    [undefined, '{"$undefined":true}'],
    [{ a: undefined }, '{"a":{"$undefined":true}}'],
    [new Date(0), '{"$date":"1970-01-01T00:00:00.000Z"}'],
    [12n, '{"$bigint":"12"}'],
    [-0, '{"$number":"-0"}'],
    [Number.NaN, '{"$number":"NaN"}'],
    [Uint8Array.of(1, 2), '{"$bytes":"AQI="}'],
    [new Map([['a', 1]]), '{"$map":[["a",1]]}'],
    [new Map(), '{"$map":[]}'],
    [new Set([1, 2]), '{"$set":[1,2]}'],
    [{ $date: 1 }, '{"$$date":1}'],
    [{ $$date: 1 }, '{"$$$date":1}'],
    [{ $date: 1, a: 1 }, '{"$date":1,"a":1}'],
    ['a\u0000\uD800', '"a\\u0000\\ud800"'],
  ])('of %o is fixed, because journals outlive versions', (value, text) => {
    expect(codec.encode(value, place)).toBe(text)
    expect(codec.decode(text, place)).toEqual(value)
  })

  it('equals that of JSON.stringify when no tag is needed', () => {
    const value = { 'a"b\n': ['x'.repeat(100), 'é\u2028', 1e21, 1.5e-7, -1], nested: { empty: {}, list: [[]] } }
    expect(codec.encode(value, place)).toBe(JSON.stringify(value))
  })
})

describe('objects', () => {
  it('an own key __proto__ stays an own key and sets no prototype', () => {
    for (const text of ['{"__proto__":{"admin":true}}', '{"a":{"$undefined":true},"__proto__":{"admin":true}}']) {
      const value = codec.decode(text, place) as Record<string, unknown>
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect(Object.hasOwn(value, '__proto__')).toBe(true)
      expect(value['admin']).toBeUndefined()
      expect(codec.encode(value, place)).toBe(text)
    }
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
  })

  it('a tag that is written as an escape is a tag all the same', () => {
    expect(codec.decode('{"\\u0024bigint":"7"}', place)).toBe(7n)
  })

  it('a getter is read once', () => {
    let reads = 0
    const value = {
      get a() {
        return ++reads
      },
    }
    expect(codec.encode(value, place)).toBe('{"a":1}')
    expect(reads).toBe(1)
  })

  it('toJSON gets its key, and a date inside what it returns survives', () => {
    const at = new Date(5)
    expect(roundTrip({ a: { toJSON: (key: string) => ({ key, at }) } })).toEqual({ a: { key: 'a', at } })
    expect(roundTrip({ price: new Decimal('1.10') })).toEqual({ price: '1.10' })
  })

  it('values of another realm are taken for what they are', () => {
    const foreign: unknown = runInNewContext(
      '({ a: [1], at: new Date(0), map: new Map([[1, { b: 2 }]]), set: new Set([1]), bytes: new Uint8Array([1]) })',
    )
    const here = { a: [1], at: new Date(0), map: new Map([[1, { b: 2 }]]), set: new Set([1]), bytes: Uint8Array.of(1) }
    expect(codec.encode(foreign, place)).toBe(codec.encode(here, place))
    expect(roundTrip(runInNewContext('new TypeError("far")'))).toBeInstanceOf(TypeError)
  })

  it('a subclass of a built-in comes back as the built-in', () => {
    class Tags extends Set<string> {}
    class Rows extends Array<number> {}
    expect(roundTrip(new Tags(['a']))).toStrictEqual(new Set(['a']))
    expect(roundTrip(Rows.of(1, 2))).toStrictEqual([1, 2])
  })
})

describe('a refusal', () => {
  it.each(poison.filter((one) => !one.storable))('of $name points at the place', ({ value, path }) => {
    const error = refusal(value())
    expect(error.details['path']).toBe(path)
    expect(error.message).toContain(`at ${path} cannot be stored`)
  })

  it('says what to do', () => {
    const cyclic: Record<string, unknown> = { a: {} }
    cyclic['a'] = { b: [cyclic['a'], cyclic] }
    expect(refusal({ order: cyclic }).message).toMatch(/at \$\.order\.a\.b\[1\] .* same object as \$\.order,/)
    expect(refusal([Promise.resolve()]).message).toContain('Await it')
    expect(refusal({ price: new Money() }).message).toMatch(/class Money.*plain data/)
    expect(refusal(new Float32Array(1)).message).toMatch(/class Float32Array.*Uint8Array/)
    expect(refusal('x'.repeat(2_000_000)).message).toMatch(/2000000 bytes.*limit is 1048576.*reference.*offload/)
    expect(refusal(['é'.repeat(600_000)]).message).toContain('1200004 bytes')
  })

  it.each<[string, unknown]>([
    ['function', () => 1],
    ['symbol', Symbol()],
    ['promise', Promise.resolve()],
    ['class-instance', new Money()],
    ['class-instance', Object.defineProperty(new Money(), Symbol.toStringTag, { value: 'Date' })],
    ['sparse-array', Array.from({ length: 2 }).concat(Array(1))],
    ['array-property', 'a1'.match(/(?<digit>\d)/)],
    ['own-property', Object.assign(new Map(), { owner: 'ada' })],
    ['own-property', [Object.assign(new Set([1]), { owner: 'ada' })]],
    ['own-property', Object.assign(new Date(0), { zone: 'UTC' })],
    ['too-deep', [[[[]]]]],
    ['too-large', ['x'.repeat(200)]],
    ['invalid-date', new Date(Number.NaN)],
    [
      'threw',
      {
        get a() {
          throw new Error('no')
        },
      },
    ],
  ])('carries the reason %s', (reason, value) => {
    const error = refusal(value, jsonCodec({ maxDepth: 3, maxBytes: 100 }))
    expect(error.details['reason']).toBe(reason)
  })

  it('keeps the error that a getter threw as its cause', () => {
    const thrown = new HoldfastError('NOT_STORABLE', 'not ours')
    const error = refusal({
      get a() {
        throw thrown
      },
    })
    expect(error).not.toBe(thrown)
    expect(error.cause).toBe(thrown)
  })

  it('does not print a key of a megabyte', () => {
    expect(refusal({ ['k'.repeat(1_000_000)]: () => 1 }).message.length).toBeLessThan(400)
  })
})

describe('limits', () => {
  it('count bytes of UTF-8, exactly', () => {
    const small = jsonCodec({ maxBytes: 20 })
    expect(roundTrip('é'.repeat(9), small)).toBe('é'.repeat(9))
    expect(refusal('é'.repeat(9) + 'x', small).details['reason']).toBe('too-large')
    expect(roundTrip('😀'.repeat(4) + 'ab', small)).toBe('😀'.repeat(4) + 'ab')
    expect(refusal(['😀'.repeat(4) + 'a'], small).details['reason']).toBe('too-large')
  })

  it('count the brackets of Map, Set and error', () => {
    const shallow = (maxDepth: number) => jsonCodec({ maxDepth })
    for (const map of [new Map([[[], 1]]), new Map([[1, []]])]) {
      expect(roundTrip(map, shallow(4))).toEqual(map)
      expect(refusal(map, shallow(3)).details['reason']).toBe('too-deep')
    }
    expect(roundTrip(new Set([[]]), shallow(3))).toEqual(new Set([[]]))
    expect(refusal(new Set([[]]), shallow(2)).details['reason']).toBe('too-deep')
    const error = Object.assign(new Error('m'), { list: [] })
    expect(Object.keys(roundTrip(error, shallow(4)) as Error)).toEqual(['list'])
    expect(Object.keys(roundTrip(error, shallow(3)) as Error)).toEqual([])
  })

  it('whatever was written at the largest depth can be read', () => {
    const deep = jsonCodec({ maxDepth: 1000 })
    for (const innermost of [new Map([[undefined, -0]]), new Set([1n]), new AggregateError([undefined], 'all')]) {
      let value: unknown = innermost
      for (let level = 1; level < 1000; level++) value = [value]
      const text = deep.encode(value, place)
      expect(deep.encode(codec.decode(text, place), place)).toBe(text)
      expect(refusal([value], deep).details['reason']).toBe('too-deep')
    }
  })

  it.each([{ maxDepth: 0 }, { maxDepth: 1001 }, { maxDepth: 1.5 }, { maxBytes: 0 }, { maxBytes: Number.NaN }])(
    'of %o are refused',
    (options) => {
      expect(() => jsonCodec(options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    },
  )
})

describe('hostile text', () => {
  it.each([
    '',
    'undefined',
    '{',
    '{"a":1}x',
    '{"$unknown":1}',
    '{"a":{"$function":"() => 1"}}',
    '{"$":1}',
    '{"$undefined":false}',
    '{"$number":"1"}',
    '{"$number":1}',
    '{"$bigint":""}',
    '{"$bigint":"0x10"}',
    '{"$bigint":"-0"}',
    '{"$date":"tomorrow"}',
    '{"$date":"2020-01-01"}',
    '{"$date":0}',
    '{"$bytes":"A"}',
    '{"$bytes":"AQJ="}',
    '{"$bytes":"AR=="}',
    '{"$bytes":"A==="}',
    '{"$bytes":"AQ==AQ=="}',
    '{"$bytes":"é+/="}',
    '{"$bytes":[1]}',
    '{"$map":{}}',
    '{"$map":[["a"]]}',
    '{"$set":{"a":1}}',
    '{"$error":null}',
    '{"$error":{"name":"Error"}}',
    '{"$error":{"name":"Error","message":"m","class":"Error"}}',
    '{"$error":{"name":"Error","message":"m","props":[]}}',
    '{"$error":{"name":"Error","message":"m","errors":{}}}',
    '{"$error":{"name":"Error","message":"m","cause":{"$x":1}}}',
  ])('%s is refused', (text) => {
    const error = corruption(text)
    expect(error.message).toContain('entry 3 ("charge") of run run-1')
    expect(error.details).toMatchObject(place)
  })

  it.each([
    ['arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects', '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000)],
    ['tags', '{"$set":['.repeat(100_000) + ']}'.repeat(100_000)],
    ['escapes', '{"$$a":'.repeat(100_000) + '1' + '}'.repeat(100_000)],
  ])('of 100,000 nested %s is refused and does not overflow the stack', (_, text) => {
    expect(corruption(text).message).toContain('nested too deep')
  })

  it('brackets inside strings are no depth', () => {
    for (const brackets of ['[{'.repeat(5000), '"' + '[{'.repeat(5000), '\\' + ']'.repeat(5000)]) {
      expect(roundTrip([brackets])).toEqual([brackets])
    }
    expect(corruption(`["\\"",${'['.repeat(5000)}`).message).toContain('nested too deep')
  })

  it('an error of an unknown class is a plain Error, and its properties are only data', () => {
    const text =
      '{"$error":{"name":"Evil","message":"m","class":["Function","constructor","__proto__"],' +
      '"props":{"__proto__":{"admin":true},"constructor":1}}}'
    const error = codec.decode(text, place) as Error
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype)
    expect((error as unknown as Record<string, unknown>)['admin']).toBeUndefined()
    expect(error.name).toBe('Evil')
  })
})
