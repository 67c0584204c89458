import { describe, expect, it } from 'vitest'
import { jsonCodec, type Codec, type Place } from '../../../src/core/codec.ts'
import { HoldfastError, isHoldfastError } from '../../../src/core/error.ts'
import { Payloads, type Offload } from '../../../src/core/payload.ts'
import { Money, poison } from '../../poison.ts'

const place: Place = { runId: 'run-1', seq: 3, name: 'charge' }
const payloads = new Payloads(jsonCodec())

function failure(thrown: unknown, with_ = payloads): unknown {
  return with_.decode(with_.encodeFailure(thrown, place), place)
}

describe('a failure', () => {
  class Declined extends Error {}
  const hostile = (property: string) =>
    Object.defineProperty(new TypeError('m'), property, {
      get() {
        throw new Error('hostile')
      },
    })

  it.each(poison)('can be recorded when what was thrown is $name', ({ value }) => {
    expect(() => failure(value())).not.toThrow()
  })

  it('that is a storable value stays that value', () => {
    expect(failure('just text')).toBe('just text')
    expect(failure(undefined)).toBeUndefined()
    expect(failure({ code: 7, at: new Date(1) })).toEqual({ code: 7, at: new Date(1) })
  })

  it('WC-A7: keeps class and message when only the rest is too large', () => {
    const replayed = failure(Object.assign(new RangeError('m'), { name: 'Mine', body: ['x'.repeat(2_000_000)] }))
    expect(replayed).toBeInstanceOf(RangeError)
    expect(replayed).toMatchObject({ name: 'Mine', message: 'm' })
  })

  it('WC-A7: with a message of megabytes keeps its class, and the message cut', () => {
    const replayed = failure(new TypeError('é'.repeat(2_000_000))) as Error
    expect(replayed).toBeInstanceOf(TypeError)
    expect(replayed.message).toBe('é'.repeat(2000))
    const knowing = new Payloads(jsonCodec({ errors: [Declined] }))
    expect(failure(new Declined('x'.repeat(2_000_000)), knowing)).toBeInstanceOf(Declined)
  })

  it.each(['message', 'name', 'stack', 'cause', 'extra'])('with a hostile %s is still a TypeError', (property) => {
    const replayed = failure(hostile(property)) as Error
    expect(replayed).toBeInstanceOf(TypeError)
    expect(typeof replayed.message).toBe('string')
    if (property !== 'message') expect(replayed.message).toBe('m')
  })

  it.each<[string, unknown]>([
    ['a proxy that refuses everything', new Proxy({}, { get: fail, getPrototypeOf: fail, ownKeys: fail, has: fail })],
    ['an error behind such a proxy', new Proxy(new Error('m'), { get: fail, getPrototypeOf: fail, ownKeys: fail })],
    ['a function', fail],
    ['a symbol', Symbol('s')],
    ['a promise', Promise.resolve()],
  ])('that is %s becomes an Error that says so', (_, thrown) => {
    const replayed = failure(thrown)
    expect(replayed).toBeInstanceOf(Error)
    expect((replayed as Error).name).toBe('Error')
    expect((replayed as Error).message).toMatch(/has no message\. The value at \$ cannot be stored/)
  })

  it('is recorded even when the codec can store nothing', () => {
    const broken: Codec = { encode: fail, decode: (text, at) => jsonCodec().decode(text, at) }
    const text = new Payloads(broken).encodeFailure(new Error('m'), place)
    expect(payloads.decode(text, place)).toMatchObject({ message: 'Something was thrown that cannot be stored' })
  })

  it('goes through the codec as a fixed error when the codec takes nothing else', () => {
    const fixed = 'Something was thrown that cannot be stored'
    const picky: Codec = { encode: (value) => ((value as Error).message === fixed ? 'sealed' : fail()), decode: fail }
    expect(new Payloads(picky).encodeFailure(new Error('m'), place)).toBe('sealed')
  })

  it('that fits no limit takes the fixed text', () => {
    const tiny = new Payloads(jsonCodec({ maxBytes: 30 }))
    expect(failure(new TypeError('m'), tiny)).toMatchObject({ message: 'Something was thrown that cannot be stored' })
  })
})

describe('a foreign codec', () => {
  it('that throws is NOT_STORABLE and PAYLOAD_CORRUPT, with the cause', () => {
    const foreign = new Payloads({ encode: fail, decode: fail })
    const cause = expect.objectContaining({ message: 'failed' }) as unknown
    expect(() => foreign.encode(1, place)).toThrow(expect.objectContaining({ code: 'NOT_STORABLE', cause }))
    expect(() => foreign.decode('1', place)).toThrow(expect.objectContaining({ code: 'PAYLOAD_CORRUPT', cause }))
  })

  it('that answers with a promise is refused', () => {
    const asynchronous = new Payloads({ encode: (() => Promise.resolve('1')) as never, decode: fail })
    expect(() => asynchronous.encode(1, place)).toThrow(expect.objectContaining({ code: 'NOT_STORABLE' }))
  })

  it('learns the place', () => {
    const bound = new Payloads({
      encode: (value, at) => `${at.runId}/${at.seq}/${at.name}:${String(value)}`,
      decode: (text, at) => [text, at],
    })
    expect(bound.encode(1, place)).toBe('run-1/3/charge:1')
    expect(bound.decode('x', place)).toEqual(['x', place])
  })

  it('and its own refusals pass unchanged', () => {
    const error = new HoldfastError('NOT_STORABLE', 'mine')
    const foreign = new Payloads({
      encode() {
        throw error
      },
      decode: fail,
    })
    expect(() => foreign.encode(1, place)).toThrow(error)
    expect(() => payloads.encode({ price: new Money() }, place)).toThrow(/\$\.price/)
  })
})

describe('offloading', () => {
  function memory(thresholdBytes: number) {
    const objects = new Map<string, string>()
    const offload: Offload = {
      thresholdBytes,
      async put(text, at) {
        objects.set(`${at.runId}/${at.seq}`, text)
        return `${at.runId}/${at.seq}`
      },
      async get(reference) {
        const text = objects.get(reference)
        if (text === undefined) throw new Error('gone')
        return text
      },
    }
    return { objects, offload }
  }

  it('takes texts past the threshold, in bytes, and leaves the others in the journal', async () => {
    const { objects, offload } = memory(8)
    const offloading = new Payloads(jsonCodec(), offload)
    expect(offloading.keep('éééé', place)).toBe('éééé')
    const kept = await offloading.keep('éééé.', place)
    expect(kept).toBe('offload:run-1/3')
    expect([...objects.values()]).toEqual(['éééé.'])
    expect(await offloading.fetch(kept)).toBe('éééé.')
    expect(offloading.fetch('éééé')).toBe('éééé')
  })

  it.each(['offload:x', 'inline:x', 'inline:offload:x', 'offload:', 'inline:', '', 'off', '{"a":1}'])(
    'never mistakes the inline text %j for a reference',
    (text) => {
      for (const one of [payloads, new Payloads(jsonCodec(), memory(1000).offload)]) {
        expect(one.fetch(one.keep(text, place) as string)).toBe(text)
      }
    },
  )

  it('that fails is STORE_UNAVAILABLE, with the cause', async () => {
    const cause = new Error('503')
    const offload: Offload = {
      thresholdBytes: 0,
      put() {
        throw cause
      },
      get: () => Promise.reject(cause),
    }
    const offloading = new Payloads(jsonCodec(), offload)
    await expect(offloading.keep('text', place)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
    await expect(offloading.fetch('offload:a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
  })

  it('without a port, or with one that answers nonsense, is STORE_UNAVAILABLE and never a wrong text', async () => {
    const nonsense = { thresholdBytes: 0, put: async () => undefined, get: async () => undefined } as unknown as Offload
    for (const one of [payloads, new Payloads(jsonCodec(), nonsense)]) {
      await expect(one.fetch('offload:a')).rejects.toSatisfy((error) => isHoldfastError(error, 'STORE_UNAVAILABLE'))
    }
    await expect(new Payloads(jsonCodec(), nonsense).keep('text', place)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  })
})

function fail(): never {
  throw new Error('failed')
}
