import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { fromBase64, toBase64, utf8Length } from '../../src/core/text/bytes.ts'
import { jsonCodec, type Place } from '../../src/core/payload/codec.ts'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import { Payloads } from '../../src/core/payload/payload.ts'
import { poison } from '../poison.ts'
import { expectSame, storable } from '../support/storable.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 1, kind: 'step-succeeded', name: null, id: null }
const codec = jsonCodec()

describe('the JSON codec', () => {
  it('gives every storable value back, and the same text for what it gave', () => {
    fc.assert(
      fc.property(storable, (value) => {
        const text = codec.encode(value, place)
        const back = codec.decode(text, place)
        expectSame(back, value)
        expect(back).toEqual(value)
        expect(codec.encode(back, place)).toBe(text)
        expect(Buffer.from(text).toString()).toBe(text)
      }),
      { numRuns: 2000 },
    )
  })

  it('writes what JSON.stringify writes for plain JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value).replaceAll('$', '_'))
        expect(codec.encode(plain, place)).toBe(JSON.stringify(plain))
      }),
      { numRuns: 1000 },
    )
  })

  it('gives an array back whole or refuses it: no hole is filled, and no property beside its elements is lost', () => {
    const index = fc.nat({ max: 6 })
    const extra = fc.tuple(fc.constantFrom('groups', 'index', '-1', '01', '4294967295', 'total'), storable)
    fc.assert(
      fc.property(
        fc.array(storable, { maxLength: 6 }),
        fc.array(index, { maxLength: 2 }),
        fc.array(extra, { maxLength: 2 }),
        (elements, holes, extras) => {
          const list = [...elements]
          const real = holes.filter((at) => at < list.length)
          for (const at of real) Reflect.deleteProperty(list, at)
          for (const [name, value] of extras) Object.assign(list, { [name]: value })
          const encode = (): string => codec.encode({ list }, place)
          const path = real.length > 0 ? `$.list[${Math.min(...real)}]` : '$.list'
          if (real.length === 0 && extras.length === 0) expectSame(codec.decode(encode(), place), { list })
          else expect(encode).toThrow(`at ${path}`)
        },
      ),
    )
  })

  it('throws nothing but PAYLOAD_CORRUPT, whatever the text', () => {
    const tag = fc.constantFrom(
      '$date',
      '$bigint',
      '$bytes',
      '$map',
      '$set',
      '$error',
      '$undefined',
      '$number',
      '$x',
      '$$',
    )
    const tagged = fc.tuple(tag, fc.jsonValue()).map(([name, content]) => JSON.stringify([{ [name]: content }]))
    const broken = fc.tuple(storable, fc.nat(), fc.string({ maxLength: 2 })).map(([value, at, junk]) => {
      const text = codec.encode(value, place)
      const cut = at % (text.length + 1)
      return text.slice(0, cut) + junk + text.slice(cut + 1)
    })
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json(), tagged, broken), (text) => {
        try {
          codec.decode(text, place)
        } catch (error) {
          expect(isHoldfastError(error, 'PAYLOAD_CORRUPT')).toBe(true)
        }
      }),
      { numRuns: 3000 },
    )
  })

  it('whatever it decodes it can encode again', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        let value: unknown
        try {
          value = codec.decode(text, place)
        } catch {
          return
        }
        expectSame(codec.decode(codec.encode(value, place), place), value)
      }),
    )
  })

  it.each(poison.filter((one) => one.storable))('gives back $name', ({ value, expected }) => {
    const back = codec.decode(codec.encode(value(), place), place)
    const wanted = (expected ?? value)()
    expect(back).toEqual(wanted)
    if (!(wanted instanceof Error)) expectSame(back, wanted)
  })

  it.each(poison.filter((one) => !one.storable))('refuses $name, naming the path', ({ value, path }) => {
    const refused = expect.objectContaining({
      code: 'NOT_STORABLE',
      message: expect.stringContaining(`at ${path} `) as unknown,
    }) as unknown
    expect(() => codec.encode(value(), place)).toThrow(refused)
  })
})

describe('failures', () => {
  it('of any kind are recorded, and errors come back as errors', () => {
    const payloads = new Payloads(codec)
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withSparseArray: true, withTypedArray: true }), (thrown) => {
        const error = Object.assign(new TypeError('m'), { thrown })
        payloads.decode(payloads.encodeFailure(thrown, place), place)
        expect(payloads.decode(payloads.encodeFailure(error, place), place)).toBeInstanceOf(TypeError)
      }),
      { numRuns: 300 },
    )
  })
})

describe('bytes', () => {
  it('are written as the platform writes base64, and read back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ size: 'large' }), (bytes) => {
        const text = toBase64(bytes)
        expect(text).toBe(Buffer.from(bytes).toString('base64'))
        expect(fromBase64(text)).toEqual(bytes)
      }),
    )
  })

  it('text that is read as base64 is the one that would be written', () => {
    const close = fc.string({ unit: fc.constantFrom(...Array.from('AQZaz09+/=\n-é')), maxLength: 12 })
    fc.assert(
      fc.property(close, (text) => {
        const bytes = fromBase64(text)
        if (bytes !== undefined) expect(toBase64(bytes)).toBe(text)
        else expect(Buffer.from(text, 'base64').toString('base64')).not.toBe(text)
      }),
      { numRuns: 3000 },
    )
  })

  it('the length of UTF-8 is that of the platform', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('', '\uD800', '\uDC00x'), (text, lone) => {
        expect(utf8Length(text + lone)).toBe(Buffer.byteLength(text + lone))
      }),
      { numRuns: 1000 },
    )
  })
})
