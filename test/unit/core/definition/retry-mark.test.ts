// What an error says about its repetition must survive whatever the error is, and must not change the error otherwise.

import { describe, expect, it } from 'vitest'
import type { Duration } from '../../../../src/core/definition/duration.ts'
import { isHoldfastError } from '../../../../src/core/errors/error.ts'
import { fatal, retryAfter, retryMarkOf } from '../../../../src/core/definition/retry-mark.ts'

class CardError extends Error {
  override readonly name = 'CardError'
  readonly card = '4242'
}

const symbol = Symbol.for('holdfast.retryMark')

describe('fatal', () => {
  it('makes an error of a message', () => {
    const error = fatal('no such account')
    expect(error).toBeInstanceOf(Error)
    expect(error.message).toBe('no such account')
    expect(retryMarkOf(error)).toEqual({ kind: 'fatal' })
  })

  it('marks the given error itself, so class, name, stack and fields stay', () => {
    const original = new CardError('expired')
    const stack = original.stack
    const error = fatal(original)
    expect(error).toBe(original)
    expect(error).toBeInstanceOf(CardError)
    expect(error.name).toBe('CardError')
    expect(error.stack).toBe(stack)
  })

  it('leaves no trace when the error is copied or listed', () => {
    const error = fatal(new CardError('expired'))
    expect(Object.keys(error).sort()).toEqual(['card', 'name'])
    expect(retryMarkOf(Object.fromEntries(Object.entries(error)))).toBeUndefined()
  })

  it.each<[string, (error: Error) => Error]>([
    ['frozen', Object.freeze],
    ['sealed', Object.seal],
    ['not extensible', Object.preventExtensions],
  ])('wraps an error that is %s', (_, close) => {
    const original = close(new CardError('expired'))
    const error = fatal(original)
    expect(error).not.toBe(original)
    expect(error.cause).toBe(original)
    expect(error.message).toBe('expired')
    expect(error.name).toBe('CardError')
    expect(retryMarkOf(error)).toEqual({ kind: 'fatal' })
    expect(retryMarkOf(original)).toBeUndefined()
  })

  it('makes an error of whatever untyped code gives it', () => {
    for (const value of [undefined, null, 5, true, Symbol('s')]) {
      const error = fatal(value as unknown as Error)
      expect(error).toBeInstanceOf(Error)
      expect(error.cause).toBe(value)
      expect(retryMarkOf(error)).toEqual({ kind: 'fatal' })
    }
  })
})

describe('retryAfter', () => {
  it('carries the delay', () => {
    const error = retryAfter('30s', new CardError('busy'))
    expect(error).toBeInstanceOf(CardError)
    expect(retryMarkOf(error)).toEqual({ kind: 'retry-after', delayMs: 30_000 })
    expect(retryMarkOf(retryAfter(0))).toEqual({ kind: 'retry-after', delayMs: 0 })
  })

  it('has a message of its own when none is given', () => {
    expect(retryAfter('90s').message).toContain('1.5 min')
    expect(retryAfter('90s', 'slow down').message).toBe('slow down')
  })

  it('refuses a delay that is none', () => {
    for (const delay of [-1, Number.NaN, '5 minuts' as unknown as Duration]) {
      expect(() => retryAfter(delay)).toThrow(expect.objectContaining({ code: 'INVALID_DURATION' }))
    }
    try {
      retryAfter(-1)
    } catch (error) {
      expect(isHoldfastError(error) && error.message).toContain('retryAfter')
    }
  })
})

describe('retryMarkOf', () => {
  it('knows none of an ordinary error or of anything that may be thrown', () => {
    for (const value of [new Error('x'), 'text', 0, null, undefined, {}, [], Symbol('s'), 1n, () => 1]) {
      expect(retryMarkOf(value)).toBeUndefined()
    }
  })

  it('takes the last word when an error is marked twice', () => {
    const error = new Error('x')
    expect(retryMarkOf(fatal(retryAfter('5s', error)))).toEqual({ kind: 'fatal' })
    expect(retryAfter('5s', fatal(error))).toBe(error)
    expect(retryMarkOf(error)).toEqual({ kind: 'retry-after', delayMs: 5000 })
  })

  it('reads what another copy of the package wrote', () => {
    const error = Object.assign(new Error('x'), { [symbol]: { kind: 'retry-after', delayMs: 7 } })
    expect(retryMarkOf(error)).toEqual({ kind: 'retry-after', delayMs: 7 })
  })

  it('does not throw on hostile values', () => {
    const throwing = () => {
      throw new Error('hostile')
    }
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const hostile = [
      revoked.proxy,
      new Proxy({}, { get: throwing, has: throwing, getOwnPropertyDescriptor: throwing }),
      new Proxy(() => 1, { get: throwing }),
      Object.defineProperty({}, symbol, { get: throwing }),
      { [symbol]: Object.defineProperty({}, 'kind', { get: throwing }) },
    ]
    for (const value of hostile) expect(retryMarkOf(value)).toBeUndefined()
  })

  it('believes no delay that a timer could not keep', () => {
    for (const delayMs of [Number.NaN, Infinity, -1, '5', null, undefined, 1.5, 5n, 2 ** 60]) {
      expect(retryMarkOf({ [symbol]: { kind: 'retry-after', delayMs } })).toBeUndefined()
    }
    for (const verdict of ['fatal', true, null, { kind: 'FATAL' }, {}]) {
      expect(retryMarkOf({ [symbol]: verdict })).toBeUndefined()
    }
  })
})
