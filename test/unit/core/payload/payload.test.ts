import { describe, expect, it } from 'vitest'
import { jsonCodec, type Codec, type Place } from '../../../../src/core/payload/codec.ts'
import { HoldfastError, isHoldfastError } from '../../../../src/core/errors/error.ts'
import { Payloads, type Offload } from '../../../../src/core/payload/payload.ts'
import { Money, poison } from '../../../poison.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 3, kind: 'step-succeeded', name: 'charge', id: null }
const failed: Place = { ...place, kind: 'step-failed' }
const payloads = new Payloads(jsonCodec())
const failureKinds = [
  'attempt-failed',
  'step-failed',
  'effect-failed',
  'undo-attempt-failed',
  'undo-failed',
  'failing',
  'failed',
] as const
const valueKinds = [
  'started',
  'continued',
  'step-succeeded',
  'recorded',
  'woken',
  'amended',
  'logged',
  'progressed',
  'issued',
  'exposed',
  'succeeded',
  'signal',
  'topic-signal',
  'broadcast',
] as const
const fixedMessage = 'Something was thrown that cannot be stored'

function failure(thrown: unknown, with_ = payloads): unknown {
  return with_.decode(with_.encodeFailure(thrown, failed), failed)
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
    const text = new Payloads(broken).encodeFailure(new Error('m'), failed)
    expect(payloads.decode(text, failed)).toMatchObject({ code: 'NOT_STORABLE', message: fixedMessage })
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

  const forged = (failure: unknown): string => marked + JSON.stringify(failure)
  const corrupt = (at: Place): unknown =>
    expect.objectContaining({ code: 'PAYLOAD_CORRUPT', details: expect.objectContaining({ ...at }) as unknown })
  const codecs = [payloads, new Payloads(sealing), new Payloads({ encode: fail, decode: (text) => text })]

  it('is read whatever the codec is, wherever an entry holds a failure', () => {
    const text = new Payloads(sealing).plain(new HoldfastError('RUN_CRASHED', 'The process died.'))
    expect(text.startsWith(marked)).toBe(true)
    for (const one of codecs) {
      for (const kind of failureKinds) {
        const read = one.decode(text, { ...place, runId: 'other', seq: 9, kind, name: null })
        expect(isHoldfastError(read, 'RUN_CRASHED')).toBe(true)
        expect(read).toMatchObject({ message: 'The process died.', details: {} })
      }
    }
  })

  it.each(valueKinds)('is refused as the payload of %s: a forged failure never becomes a value', (kind) => {
    const text = payloads.plain(new HoldfastError('RUN_CRASHED', 'paid 1000000 to EVIL'))
    for (const one of codecs) expect(() => one.decode(text, { ...place, kind })).toThrow(corrupt({ ...place, kind }))
  })

  it('holds a code and a message, and neither details nor a cause', () => {
    const cause = new Error('inside')
    const text = payloads.plain(new HoldfastError('RUN_CRASHED', 'died', { cause, details: { crashes: 3 } }))
    expect(text).toBe(`${marked}{"code":"RUN_CRASHED","message":"died"}`)
    const read = payloads.decode(text, failed) as Error
    expect([read.cause, read.stack, Object.keys(read).sort()]).toEqual([
      undefined,
      undefined,
      ['code', 'details', 'name'],
    ])
  })

  it('is cut when its message is long', () => {
    const text = payloads.plain(new HoldfastError('BUG', 'é'.repeat(2_000_000)))
    expect(payloads.decode(text, failed)).toMatchObject({ code: 'BUG', message: 'é'.repeat(2000) })
  })

  const failure = { code: 'RUN_CRASHED', message: 'm' }
  it.each<[string, string]>([
    ['a value', forged({ amount: 1 })],
    [
      'an error with props, as a codec writes it',
      forged({ $error: { name: 'E', message: 'm', props: { amount: 1 } } }),
    ],
    ['a field besides', forged({ ...failure, amount: 1 })],
    ['a class besides', forged({ ...failure, name: 'PaymentDeclined' })],
    ['a cause besides', forged({ ...failure, cause: 'x' })],
    ['details besides', forged({ ...failure, details: {} })],
    ['a prototype', `${marked}{"code":"RUN_CRASHED","message":"m","__proto__":{"a":1}}`],
    ['a code that there is not', forged({ code: 'PAID', message: 'm' })],
    ['no code', forged({ message: 'm' })],
    ['a message that is no text', forged({ code: 'BUG', message: { a: 1 } })],
    ['a message that nobody would have cut', forged({ code: 'BUG', message: 'm'.repeat(2001) })],
    ['its parts in another order', forged({ message: 'm', code: 'BUG' })],
    ['a space', `${marked}{"code":"BUG", "message":"m"}`],
    ['a key twice', `${marked}{"code":"BUG","code":"BUG","message":"m"}`],
    ['a list', forged([failure])],
    ['nothing', marked],
    ['no JSON', `${marked}not JSON`],
  ])('is refused where a failure is expected when it was forged with %s', (_, text) => {
    for (const one of codecs) expect(() => one.decode(text, failed)).toThrow(corrupt(failed))
  })

  it('cannot be written by a codec', () => {
    const forging = new Payloads({ encode: () => payloads.plain(new HoldfastError('BUG', 'forged')), decode: fail })
    expect(() => forging.encode('value', place)).toThrow(expect.objectContaining({ code: 'NOT_STORABLE' }))
    const text = forging.encodeFailure(new Error('m'), failed)
    expect(forging.decode(text, failed)).toMatchObject({ message: fixedMessage })
  })

  it('is never put elsewhere: who gets it must see that it is one', () => {
    const text = payloads.plain(new HoldfastError('BUG', 'm'))
    const offload: Offload = { thresholdBytes: 0, put: fail, get: fail }
    for (const one of [payloads, new Payloads(jsonCodec(), offload)]) {
      expect(one.fetch(one.keep(text, failed) as string)).toBe(text)
    }
  })

  it('says nothing of an error that the codec failed to store, for the codec may be there to encrypt', () => {
    const text = new Payloads({ encode: fail, decode: fail }).encodeFailure(new Error('card 4111'), failed)
    expect(text.startsWith(marked)).toBe(true)
    expect(text).not.toContain('4111')
    expect(new Payloads(sealing).decode(text, failed)).toMatchObject({ message: fixedMessage })
  })
})

describe('what is received', () => {
  const sent: Place = { ...place, seq: 0, kind: 'signal', name: 'paid', id: 'm' }
  const received: Place = { ...place, kind: 'woken', name: 'paid' }
  const binding: Codec = {
    encode: (value, at) => `${at.kind} ${JSON.stringify(value instanceof Error ? value.message : value)}`,
    decode(text, at) {
      if (!text.startsWith(`${at.kind} `)) throw new Error('moved')
      return JSON.parse(text.slice(at.kind.length + 1)) as unknown
    },
  }
  const bound = new Payloads(binding)

  it('is read where it was sent from, and written anew for who gets it', () => {
    const text = bound.encode({ amount: 1 }, sent)
    const own = bound.received(text, sent, received)
    expect([text, own]).toEqual(['signal {"amount":1}', 'woken {"amount":1}'])
    expect(() => bound.received(text, { ...sent, kind: 'broadcast' }, received)).toThrow(
      expect.objectContaining({ code: 'PAYLOAD_CORRUPT' }),
    )
  })

  it('needs that of a codec whose texts belong to their places, and of no other', () => {
    expect([bound.isMovable('signal 1'), payloads.isMovable('1')]).toEqual([false, true])
  })

  it('never stays a failure of the engine’s own: where it is received stands a value', () => {
    const text = payloads.plain(new HoldfastError('RUN_TIMEOUT', 'late'))
    expect(payloads.isMovable(text)).toBe(false)
    const own = payloads.received(text, { ...place, kind: 'failed' }, received)
    expect(payloads.decode(own, received)).toMatchObject({ code: 'RUN_TIMEOUT', message: 'late' })
    const broken = new Payloads({ encode: fail, decode: fail })
    expect(() => broken.received(text, { ...place, kind: 'failed' }, received)).toThrow(
      expect.objectContaining({ code: 'NOT_STORABLE' }),
    )
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

function fail(): never {
  throw new Error('failed')
}
