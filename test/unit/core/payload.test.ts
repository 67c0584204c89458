import { describe, expect, it } from 'vitest'
import { jsonCodec, type Codec, type Place } from '../../../src/core/codec.ts'
import { HoldfastError, isHoldfastError } from '../../../src/core/error.ts'
import { Payloads, type Offload } from '../../../src/core/payload.ts'
import { Money, poison } from '../../poison.ts'

const place: Place = { runId: 'run-1', seq: 3, name: 'charge' }
const payloads = new Payloads(jsonCodec())
const fixedMessage = 'Something was thrown that cannot be stored'

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
    expect(payloads.decode(text, place)).toMatchObject({ message: fixedMessage })
  })

  it('goes through the codec as a fixed error when the codec takes nothing else', () => {
    const picky: Codec = {
      encode: (value) => ((value as Error).message === fixedMessage ? 'sealed' : fail()),
      decode: fail,
    }
    expect(new Payloads(picky).encodeFailure(new Error('m'), place)).toBe('sealed')
  })

  it('that fits no limit takes the fixed text', () => {
    const tiny = new Payloads(jsonCodec({ maxBytes: 30 }))
    expect(failure(new TypeError('m'), tiny)).toMatchObject({ message: fixedMessage })
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

describe('a text that the engine writes itself', () => {
  const marked = '\u0001plain:'
  const sealing: Codec = { encode: () => 'sealed', decode: fail }

  it('is read whatever the codec is, at any place', () => {
    const error = new HoldfastError('RUN_CRASHED', 'The process died.', { details: { crashes: 3 } })
    const text = new Payloads(sealing).plain(error)
    expect(text.startsWith(marked)).toBe(true)
    for (const one of [payloads, new Payloads(sealing), new Payloads({ encode: fail, decode: fail })]) {
      expect(one.decode(text, place)).toMatchObject({ code: 'RUN_CRASHED', details: { crashes: 3 } })
      expect(isHoldfastError(one.decode(text, { runId: 'other', seq: 9, name: null }), 'RUN_CRASHED')).toBe(true)
    }
  })

  it.each(poison)('is an error and throws nothing when it is made of $name', ({ value }) => {
    expect(payloads.decode(payloads.plain(value()), place)).toBeInstanceOf(Error)
  })

  it.each<[string, unknown]>([
    ['a proxy that refuses everything', new Proxy(new Error('m'), { get: fail, getPrototypeOf: fail, ownKeys: fail })],
    ['a message of megabytes', new TypeError('é'.repeat(2_000_000))],
    ['nothing', undefined],
  ])('can be made of %s', (_, thrown) => {
    expect(payloads.decode(payloads.plain(thrown), place)).toBeInstanceOf(Error)
  })

  it.each(['{"amount":1}', '"text"', 'null', '[{"$error":{"name":"Error","message":"m"}}]', '', 'not JSON'])(
    'is refused when it holds %j instead of an error: it must not stand for a value that a codec vouches for',
    (text) => {
      const details = expect.objectContaining({ ...place }) as unknown
      const refused = expect.objectContaining({ code: 'PAYLOAD_CORRUPT', details }) as unknown
      expect(() => new Payloads(sealing).decode(marked + text, place)).toThrow(refused)
    },
  )

  it('cannot be written by a codec', () => {
    const forging = new Payloads({ encode: () => payloads.plain(new Error('forged')), decode: fail })
    expect(() => forging.encode('value', place)).toThrow(expect.objectContaining({ code: 'NOT_STORABLE' }))
    expect(forging.decode(forging.encodeFailure(new Error('m'), place), place)).toMatchObject({ message: fixedMessage })
  })

  it('is kept and fetched like any other', () => {
    const text = payloads.plain(new Error('m'))
    expect(payloads.fetch(payloads.keep(text, place) as string)).toBe(text)
  })

  it('says nothing of an error that the codec failed to store, for the codec may be there to encrypt', () => {
    const text = new Payloads({ encode: fail, decode: fail }).encodeFailure(new Error('card 4111'), place)
    expect(text.startsWith(marked)).toBe(true)
    expect(text).not.toContain('4111')
    expect(new Payloads(sealing).decode(text, place)).toMatchObject({ message: fixedMessage })
  })
})

describe('a codec of the user', () => {
  const hex: Codec = {
    encode: (value, at) => Buffer.from(jsonCodec().encode(value, at)).toString('hex'),
    decode: (text, at) => jsonCodec().decode(Buffer.from(text, 'hex').toString(), at),
  }

  it.each(poison.filter((one) => one.storable))('IF-V3 takes the place of JSON and gives back $name', (one) => {
    const plugged = new Payloads(hex)
    const text = plugged.encode(one.value(), place)
    expect(text).toMatch(/^[0-9a-f]+$/)
    expect(plugged.decode(plugged.fetch(plugged.keep(text, place) as string) as string, place)).toEqual(
      (one.expected ?? one.value)(),
    )
  })

  it('IF-V3 has a format of its own: its texts are not JSON, and JSON is not read as its own', () => {
    const lines: Codec = {
      encode: (value) =>
        Object.entries(value as object)
          .map(([key, item]) => `${key}=${String(item)}`)
          .join('\n'),
      decode: (text) => Object.fromEntries(text.split('\n').map((line) => line.split('='))) as unknown,
    }
    const plugged = new Payloads(lines)
    expect(plugged.encode({ a: '1', b: '2' }, place)).toBe('a=1\nb=2')
    expect(plugged.decode('a=1\nb=2', place)).toEqual({ a: '1', b: '2' })
    expect(() => payloads.decode('a=1\nb=2', place)).toThrow(expect.objectContaining({ code: 'PAYLOAD_CORRUPT' }))
  })

  it('IF-V3 stores failures, too', () => {
    expect(failure(new RangeError('m'), new Payloads(hex))).toBeInstanceOf(RangeError)
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
