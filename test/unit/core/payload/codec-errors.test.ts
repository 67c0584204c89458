// Errors as data: what is kept of them, and as what they come back.

import { describe, expect, it } from 'vitest'
import { jsonCodec, type Codec, type Place } from '../../../../src/core/payload/codec.ts'
import { errorCodes, HoldfastError, isHoldfastError } from '../../../../src/core/errors/error.ts'
import { Money, throwing } from '../../../poison.ts'

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

describe('errors', () => {
  class PaymentDeclined extends Error {
    readonly reason: string
    constructor(reason: string) {
      super(`declined: ${reason.toUpperCase()}`)
      this.reason = reason
    }
  }
  class CardExpired extends PaymentDeclined {
    override readonly name = 'CardExpired'
  }
  class Limit extends RangeError {}
  const knowing = jsonCodec({ errors: [PaymentDeclined] })

  it.each([Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError])(
    'WC-A7: what is caught on replay is the %o that was thrown',
    (Class) => {
      const error = new Class('no')
      const replayed = roundTrip(error) as Error
      expect(Object.getPrototypeOf(replayed)).toBe(Class.prototype)
      expect(replayed).toMatchObject({ name: Class.name, message: 'no' })
      expect(replayed.stack).toBe(error.stack)
      expect(Object.prototype.toString.call(replayed)).toBe('[object Error]')
      expect(Object.keys(replayed)).toEqual([])
    },
  )

  it('WC-A7: a registered class comes back as such, without running its constructor', () => {
    const replayed = roundTrip(new PaymentDeclined('funds'), knowing) as PaymentDeclined
    expect(replayed).toBeInstanceOf(PaymentDeclined)
    expect(replayed).toMatchObject({ name: 'Error', message: 'declined: FUNDS', reason: 'funds' })
  })

  it('WC-A7: a class that is not known comes back as its nearest known ancestor', () => {
    const expired = roundTrip(new CardExpired('old'), knowing) as CardExpired
    expect(Object.getPrototypeOf(expired)).toBe(PaymentDeclined.prototype)
    expect(expired).toMatchObject({ name: 'CardExpired', reason: 'old' })
    expect(roundTrip(new Limit('much'))).toBeInstanceOf(RangeError)
    const plain = roundTrip(new CardExpired('old')) as Error
    expect(Object.getPrototypeOf(plain)).toBe(Error.prototype)
    expect(plain.name).toBe('CardExpired')
    expect(roundTrip(new DOMException('stop', 'AbortError'))).toMatchObject({ name: 'AbortError', message: 'stop' })
  })

  it('a plain Error that was given the name of a class does not become that class', () => {
    const error = Object.assign(new Error('m'), { name: 'TypeError' })
    expect(roundTrip(error)).not.toBeInstanceOf(TypeError)
    expect((roundTrip(error) as Error).name).toBe('TypeError')
  })

  it('causes, aggregated errors and properties come back', () => {
    const cause = Object.assign(new TypeError('inner'), { code: 'E_INNER', at: new Date(1) })
    const error = new AggregateError([new RangeError('one'), 'two'], 'all', { cause })
    const replayed = roundTrip(error) as AggregateError
    expect(replayed).toBeInstanceOf(AggregateError)
    expect(replayed.errors).toEqual([new RangeError('one'), 'two'])
    expect(replayed.cause).toBeInstanceOf(TypeError)
    expect(replayed.cause).toMatchObject({ message: 'inner', code: 'E_INNER', at: new Date(1) })
    expect(Object.hasOwn(roundTrip(new Error('m', { cause: undefined })) as Error, 'cause')).toBe(true)
    expect(Object.hasOwn(roundTrip(new Error('m')) as Error, 'cause')).toBe(false)
  })

  it('parts that cannot be stored are left out, and nothing else', () => {
    const error = Object.assign(new Error('m'), {
      before: 1,
      request: new Money(),
      half: { fine: 1, deep: [() => 1] },
      huge: 'x'.repeat(2_000_000),
      $date: 'mine',
      after: 2,
    })
    Object.defineProperty(error, 'broken', { enumerable: true, get: throwing })
    const cyclic = Object.assign(new Error('n', { cause: () => 1 }), { error })
    Object.assign(error, { self: error, cyclic })
    const replayed = roundTrip(error) as Error & { cyclic: Error }
    expect(Object.keys(replayed)).toEqual(['before', '$date', 'after', 'cyclic'])
    expect(Object.keys(replayed.cyclic)).toEqual([])
    expect(replayed.cyclic.cause).toBeUndefined()
  })

  it('a refusal after such a part still points at the right place', () => {
    const error = Object.assign(new Error('m'), { half: { deep: [() => 1] } })
    expect(refusal({ list: [error, () => 1] }).details['path']).toBe('$.list[1]')
  })

  it('the text names the classes only when the name does not, and a lost stack stays lost', () => {
    const withoutStack = (error: Error) => Object.defineProperty(error, 'stack', { value: undefined })
    for (const [error, text] of [
      [new TypeError('m'), '{"$error":{"name":"TypeError","message":"m"}}'],
      [new Limit('m'), '{"$error":{"name":"RangeError","message":"m","class":["Limit","RangeError"]}}'],
      [
        new PaymentDeclined('r'),
        '{"$error":{"name":"Error","message":"declined: R","class":["PaymentDeclined"],"props":{"reason":"r"}}}',
      ],
    ] as const) {
      expect(codec.encode(withoutStack(error), place)).toBe(text)
      expect((codec.decode(text, place) as Error).stack).toBeUndefined()
    }
  })

  it('a chain of causes that is too deep is cut', () => {
    let error = new Error('innermost')
    for (let level = 0; level < 5000; level++) error = new Error(`level ${level}`, { cause: error })
    expect((roundTrip(error) as Error).message).toBe('level 4999')
  })

  it.each(errorCodes)('WC-A7: a HoldfastError %s keeps code, details and brand', (code) => {
    const error = new HoldfastError(code, 'news', { details: { at: new Date(1) }, cause: new TypeError('why') })
    const replayed = roundTrip(error)
    expect(isHoldfastError(replayed, code)).toBe(true)
    expect(replayed).toBeInstanceOf(HoldfastError)
    expect(replayed).toMatchObject({ message: 'news', details: { at: new Date(1) }, family: error.family })
    expect((replayed as Error).cause).toBeInstanceOf(TypeError)
  })

  it('a HoldfastError with a code that is not known here is a plain Error', () => {
    const text = codec.encode(new HoldfastError('BUG', 'm'), place).replace('"BUG"', '"FROM_THE_FUTURE"')
    const replayed = codec.decode(text, place) as Error
    expect(isHoldfastError(replayed)).toBe(false)
    expect(Object.getPrototypeOf(replayed)).toBe(Error.prototype)
    expect(replayed).toMatchObject({ name: 'HoldfastError', code: 'FROM_THE_FUTURE' })
  })

  it('a registered subclass of HoldfastError keeps the brand', () => {
    class Refused extends HoldfastError {}
    const replayed = roundTrip(new Refused('RUN_FAILED', 'm'), jsonCodec({ errors: [Refused] }))
    expect(replayed).toBeInstanceOf(Refused)
    expect(isHoldfastError(replayed, 'RUN_FAILED')).toBe(true)
  })

  it.each([
    [[PaymentDeclined, PaymentDeclined]],
    [[class extends Error {}]],
    [[Money]],
    [[TypeError]],
    [[HoldfastError]],
  ])('the registration %o is refused', (errors) => {
    expect(() => jsonCodec({ errors: errors as never })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})
