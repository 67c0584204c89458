// The encrypting codec: what it hides, what it refuses to read, and what it says about that.

import { createCipheriv, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { jsonCodec, type Codec, type Place } from '../../../src/core/payload/codec.ts'
import { HoldfastError, isHoldfastError } from '../../../src/core/errors/error.ts'
import { Payloads } from '../../../src/core/payload/payload.ts'
import { encryptingCodec } from '../../../src/encryption/index.ts'
import { poison } from '../../poison.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 3, kind: 'step-succeeded', name: 'charge', id: null }
const first = randomBytes(32)
const second = randomBytes(32)
const codec = encryptingCodec({ keys: { first, second }, current: 'first' })
const canary = 'canary-4111-1111'

function refusal(act: () => unknown, code: 'PAYLOAD_CORRUPT' | 'NOT_STORABLE' = 'PAYLOAD_CORRUPT'): HoldfastError {
  try {
    act()
  } catch (error) {
    if (isHoldfastError(error, code)) return error
    throw error
  }
  throw new Error('it was accepted')
}

/** Everything that a log could show of an error. */
function wordsOf(error: HoldfastError): string {
  return JSON.stringify([error.message, error.details, String(error.cause), error.stack])
}

function decodeBody(text: string): { head: string; body: Buffer } {
  const cut = text.lastIndexOf('.') + 1
  return { head: text.slice(0, cut), body: Buffer.from(text.slice(cut), 'base64url') }
}

describe('an encrypted text', () => {
  it.each(poison.filter((one) => one.storable))('gives back $name', ({ value, expected }) => {
    expect(codec.decode(codec.encode(value(), place), place)).toEqual((expected ?? value)())
  })

  it.each(poison.filter((one) => !one.storable))(
    'is not made of $name: the refusal names the path',
    ({ value, path }) => {
      expect(refusal(() => codec.encode(value(), place), 'NOT_STORABLE').message).toContain(`at ${path} `)
    },
  )

  it('names its version and key, and is one line of ASCII', () => {
    expect(codec.encode({ canary }, place)).toMatch(/^enc1\.first\.[\w-]+$/)
  })

  it('holds nothing of the value, in whatever form', () => {
    const { body } = decodeBody(codec.encode({ canary }, place))
    expect(body.toString('latin1')).not.toContain(canary.slice(0, 6))
    expect(body.length).toBe(12 + JSON.stringify({ canary }).length + 16)
  })

  it('is another one each time: equal values cannot be recognized from the outside', () => {
    const texts = Array.from({ length: 100 }, () => decodeBody(codec.encode('same', place)).body)
    expect(new Set(texts.map((body) => body.subarray(0, 12).toString('hex'))).size).toBe(100)
    expect(new Set(texts.map((body) => body.subarray(12).toString('hex'))).size).toBe(100)
  })

  it('can be read by anyone who has the key and knows the format', () => {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', first, nonce)
    cipher.setAAD(Buffer.from('["enc1","first","","run-1",3,"step-succeeded","data","charge",null]'))
    const sealed = Buffer.concat([nonce, cipher.update('{"a":1}'), cipher.final(), cipher.getAuthTag()])
    expect(codec.decode(`enc1.first.${sealed.toString('base64url')}`, place)).toEqual({ a: 1 })
  })
})

describe('a text that is refused', () => {
  const text = codec.encode({ canary }, place)
  const { head, body } = decodeBody(text)
  const flipped = (at: number): string => {
    const copy = Buffer.from(body)
    copy[at] = copy[at]! ^ 1
    return head + copy.toString('base64url')
  }

  it.each<[string, string, Place, RegExp]>([
    ['the key is not here', text.replace('first', 'third'), place, /the key "third", which is not here/],
    ['the key has another id', text.replace('first', 'second'), place, /does not open with the key "second"/],
    ['it was moved to another run', text, { ...place, runId: 'run-2' }, /changed or moved/],
    ['it was moved to another entry', text, { ...place, seq: 4 }, /changed or moved/],
    ['its entry was given another name', text, { ...place, name: 'refund' }, /changed or moved/],
    ['its entry was robbed of its name', text, { ...place, name: null }, /changed or moved/],
    ['its entry was made one of another kind', text, { ...place, kind: 'step-failed' }, /changed or moved/],
    ['it was moved to another database', text, { ...place, namespace: 'theirs' }, /changed or moved/],
    ['it was moved to a message', text, { ...place, id: 'charge' }, /changed or moved/],
    ['parts of its place were shifted', text, { ...place, runId: 'run-1,3' }, /changed or moved/],
    ['a bit of the nonce flipped', flipped(0), place, /changed or moved/],
    ['a bit of the content flipped', flipped(14), place, /changed or moved/],
    ['a bit of the tag flipped', flipped(body.length - 1), place, /changed or moved/],
    ['its end is missing', text.slice(0, -4), place, /changed or moved/],
    ['most of it is missing', text.slice(0, 30), place, /not a whole encrypted text/],
    ['nothing but the header is left', 'enc1.first.', place, /not a whole encrypted text/],
    ['nothing but the version is left', 'enc1.', place, /not a whole encrypted text/],
    ['something was added', `${text}.x`, place, /not a whole encrypted text/],
    ['it has spaces inside', `${text.slice(0, 40)} ${text.slice(40)}`, place, /not a whole encrypted text/],
    ['it is in the other base64', `${text}=`, place, /not a whole encrypted text/],
    ['its key id is no key id', `enc1.${'k'.repeat(60)}.${body.toString('base64url')}`, place, /not a whole/],
    ['its version is newer', text.replace('enc1', 'enc3'), place, /a way that this version does not know/],
    ['it is not encrypted', `{"canary":"${canary}"}`, place, /not encrypted, and `readPlain` .* is off/],
    ['it is empty', '', place, /not encrypted/],
  ])('when %s is PAYLOAD_CORRUPT, and shows neither content nor key', (_, given, at, reason) => {
    const error = refusal(() => codec.decode(given, at))
    expect(error.details).toMatchObject({ ...at, reason: expect.stringMatching(reason) as unknown })
    for (const secret of [canary, first.toString('hex'), first.toString('base64'), body.toString('base64url')]) {
      expect(wordsOf(error)).not.toContain(secret)
    }
  })

  it('when the key has the same id and other bytes is PAYLOAD_CORRUPT', () => {
    const other = encryptingCodec({ keys: { first: second }, current: 'first' })
    expect(refusal(() => other.decode(text, place)).details['reason']).toMatch(/that is another key now/)
  })

  it('is refused at the next run or entry only: its own still reads it', () => {
    expect(codec.decode(text, place)).toEqual({ canary })
  })

  it('when the codec inside cannot read what was decrypted does not quote it', () => {
    const plain: Codec = { encode: String, decode: (given) => given }
    const sealed = encryptingCodec({ keys: { first }, current: 'first', codec: plain }).encode(canary, place)
    expect(wordsOf(refusal(() => codec.decode(sealed, place)))).not.toContain(canary.slice(0, 6))
    const hostile: Codec = {
      encode: String,
      decode(given) {
        throw new Error(given)
      },
    }
    const quoting = encryptingCodec({ keys: { first }, current: 'first', codec: hostile })
    const error = refusal(() => quoting.decode(quoting.encode(canary, place), place))
    expect(wordsOf(error)).not.toContain(canary)
    expect(error.details['reason']).toBe('the codec inside the encryption failed')
  })
})

describe('the name of a database', () => {
  const keys = { first }
  const shop = encryptingCodec({ keys, current: 'first', namespace: 'shop' })

  it('keeps a text of one database from being read in another that has the same keys', () => {
    const bank = encryptingCodec({ keys, current: 'first', namespace: 'bank' })
    const text = bank.encode({ canary }, place)
    expect(refusal(() => shop.decode(text, place)).details['reason']).toMatch(/moved here/)
  })

  it('takes the place of what the store is called, so that a schema can be renamed', () => {
    const text = shop.encode({ canary }, { ...place, namespace: 'old' })
    expect(shop.decode(text, { ...place, namespace: 'new' })).toEqual({ canary })
    refusal(() => codec.decode(codec.encode(1, { ...place, namespace: 'old' }), { ...place, namespace: 'new' }))
  })
})

describe('rotation', () => {
  const before = encryptingCodec({ keys: { first }, current: 'first' })
  const after = encryptingCodec({
    keys: new Map([
      ['first', first],
      ['second', second],
    ]),
    current: 'second',
  })

  it('writes with the new key and reads what the old one wrote', () => {
    const old = before.encode({ canary }, place)
    const renewed = after.encode({ canary }, place)
    expect(renewed).toMatch(/^enc1\.second\./)
    expect(after.decode(old, place)).toEqual({ canary })
    expect(after.decode(renewed, place)).toEqual({ canary })
  })

  it('is not understood by a process that has the old keys only: its runs are refused, nothing crashes', () => {
    const text = after.encode({ canary }, place)
    expect(refusal(() => new Payloads(before).decode(text, place)).message).toMatch(/"second", which is not here/)
  })
})

describe('texts from before encryption', () => {
  const lenient = encryptingCodec({ keys: { first }, current: 'first', readPlain: true })

  it('are read only if that is asked for, and nothing is written so', () => {
    const plain = jsonCodec().encode({ a: new Date(0) }, place)
    expect(lenient.decode(plain, place)).toEqual({ a: new Date(0) })
    expect(lenient.encode(1, place)).toMatch(/^enc1\./)
    refusal(() => codec.decode(plain, place))
  })

  it('do not excuse an encrypted text that was changed', () => {
    const text = lenient.encode({ canary }, place)
    refusal(() => lenient.decode(text, { ...place, seq: 4 }))
    refusal(() => lenient.decode(text.slice(0, -1), place))
    refusal(() => lenient.decode(text.slice(1), place))
    refusal(() => lenient.decode(text.replace('enc1', 'enc3'), place))
  })

  it('are not quoted when they cannot be read', () => {
    expect(wordsOf(refusal(() => lenient.decode(canary, place)))).not.toContain(canary.slice(0, 6))
  })
})

describe('the codec inside', () => {
  it('learns the place and may be any codec', () => {
    const seen: Place[] = []
    const inner: Codec = {
      encode(value, at) {
        seen.push(at)
        return `<${String(value)}>`
      },
      decode(text, at) {
        seen.push(at)
        return text.slice(1, -1)
      },
    }
    const outer = encryptingCodec({ keys: { first }, current: 'first', codec: inner })
    expect(outer.decode(outer.encode('é👩', place), place)).toBe('é👩')
    expect(seen).toEqual([place, place])
  })

  it.each<[string, unknown]>([
    ['half of a surrogate pair', 'a\uD800'],
    ['no text', Promise.resolve('later')],
  ])('that writes %s is refused when it writes, not when it is read', (_, text) => {
    const inner = { encode: () => text, decode: String } as unknown as Codec
    const outer = encryptingCodec({ keys: { first }, current: 'first', codec: inner })
    refusal(() => outer.encode(1, place), 'NOT_STORABLE')
  })
})

describe('payloads under encryption', () => {
  const payloads = new Payloads(codec)
  const failed: Place = { ...place, kind: 'failed' }

  it('record failures with nothing of them readable', () => {
    const text = payloads.encodeFailure(new RangeError(canary), failed)
    expect(text).toMatch(/^enc1\./)
    expect(payloads.decode(text, failed)).toBeInstanceOf(RangeError)
    expect(payloads.decode(text, failed)).toMatchObject({ message: canary })
  })

  it('read the engine’s own failures without a key, and take nothing but errors that way', () => {
    const text = payloads.plain(new HoldfastError('RUN_CRASHED', 'died'))
    expect(payloads.decode(text, failed)).toMatchObject({ code: 'RUN_CRASHED' })
    refusal(() => payloads.decode('\u0001plain:{"amount":1}', failed))
    refusal(() => payloads.decode(text, place))
  })
})
