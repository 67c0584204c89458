// The options of the encrypting codec: what is a key, and that no error shows one.

import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { Place } from '../../../src/core/payload/codec.ts'
import { isHoldfastError, type HoldfastError } from '../../../src/core/errors/error.ts'
import { encryptingCodec, type EncryptingCodecOptions } from '../../../src/encryption/index.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 3, kind: 'step-succeeded', name: null, id: null }
const key = randomBytes(32)

function refusal(options: unknown): HoldfastError {
  try {
    encryptingCodec(options as EncryptingCodecOptions)
  } catch (error) {
    if (isHoldfastError(error, 'INVALID_OPTION')) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('a key', () => {
  it.each<[string, Uint8Array | string]>([
    ['a Buffer', key],
    ['a Uint8Array', Uint8Array.from(key)],
    ['hex', key.toString('hex')],
    ['hex in large letters', key.toString('hex').toUpperCase()],
    ['base64', key.toString('base64')],
    ['base64 without padding', key.toString('base64').replace(/=+$/, '')],
    ['base64url', key.toString('base64url')],
  ])('may be %s', (_, given) => {
    const text = encryptingCodec({ keys: { k: key }, current: 'k' }).encode('secret', place)
    expect(encryptingCodec({ keys: { k: given }, current: 'k' }).decode(text, place)).toBe('secret')
  })

  it.each<[string, unknown, RegExp]>([
    ['too short', key.subarray(1), /The key "k" must be 32 bytes.* It has 31\./],
    ['too long', randomBytes(64), /It has 64\./],
    ['empty', new Uint8Array(), /It has 0\./],
    ['an empty text', '', /It has 0\./],
    ['hex of 16 bytes', randomBytes(16).toString('hex'), /must be 32 bytes/],
    ['base64 of 16 bytes', Buffer.alloc(16).toString('base64'), /It has 16\./],
    ['a sentence', 'correct horse battery staple, hunter2', /must be 32 bytes/],
    ['text that ends in a line break', `${key.toString('base64')}\n`, /must be 32 bytes/],
    ['missing', undefined, /must be 32 bytes/],
    ['an array of numbers', [...key], /must be 32 bytes/],
    ['another typed array', new Uint16Array(32), /must be 32 bytes/],
  ])('that is %s is refused, without showing it', (_, given, message) => {
    const error = refusal({ keys: { k: given }, current: 'k' })
    expect(error.message).toMatch(message)
    if (typeof given === 'string' && given !== '') expect(inspect(error)).not.toContain(given.slice(0, 8))
  })

  it('may be wiped by its owner once the codec is made', () => {
    const own = Uint8Array.from(key)
    const codec = encryptingCodec({ keys: { k: own }, current: 'k' })
    own.fill(0)
    const text = codec.encode('secret', place)
    expect(encryptingCodec({ keys: { k: key }, current: 'k' }).decode(text, place)).toBe('secret')
  })

  it('does not show when the codec is printed, but its id does', () => {
    const codec = encryptingCodec({ keys: { k: key }, current: 'k' })
    expect(inspect(codec, { depth: 9, showHidden: true })).not.toMatch(/Buffer|Uint8Array/)
    expect(JSON.stringify(codec)).toBe('{"keys":["k"],"currentKey":"k"}')
  })
})

describe('the id of a key', () => {
  it.each(['2026-11', 'k', 'team/eu:1', 'schlüssel', '__proto__', 'a b', 'x'.repeat(32)])('may be %j', (id) => {
    const codec = encryptingCodec({ keys: new Map([[id, key]]), current: id })
    expect(codec.decode(codec.encode('secret', place), place)).toBe('secret')
  })

  it.each(['', 'a.b', '.', 'a\nb', '\u0000', '\uD800', 'x'.repeat(33)])('may not be %j', (id) => {
    expect(refusal({ keys: new Map([[id, key]]), current: id }).message).toMatch(/^The id of a key must be printable/)
  })

  it('that is the key itself by mistake does not show', () => {
    for (const secret of [key.toString('hex'), key.toString('base64')]) {
      for (const options of [
        { keys: { [secret]: 'k' }, current: 'k' },
        { keys: { k: key }, current: secret },
        secret,
      ]) {
        expect(inspect(refusal(options))).not.toContain(secret.slice(0, 8))
      }
    }
  })
})

describe('wrong options', () => {
  it.each<[string, unknown, RegExp]>([
    ['no current key', { keys: { k: key } }, /needs `current`.* The ids are: "k"\./],
    ['a current key that is not there', { keys: { '2026-10': key }, current: '2026-11' }, /Did you mean "2026-10"\?/],
    [
      'a current key that is no text',
      { keys: { 1: key }, current: 1 },
      /`current` must be the id of one of the keys\./,
    ],
    ['a current key from the prototype', { keys: { k: key }, current: 'toString' }, /"toString" is not/],
    ['no keys', { current: 'k' }, /`keys` must be an object or a Map/],
    ['one key in place of keys', { keys: key, current: 'k' }, /`keys` must be an object or a Map/],
    ['a list of keys', { keys: [key], current: '0' }, /`keys` must be an object or a Map/],
    ['an empty set of keys', { keys: {}, current: 'k' }, /at least one key/],
    ['a misspelt option', { keys: { k: key }, curent: 'k' }, /Did you mean "current"\?/],
    ['a namespace that is no text', { keys: { k: key }, current: 'k', namespace: 5 }, /`namespace` must be/],
    ['a readPlain that is no boolean', { keys: { k: key }, current: 'k', readPlain: 'false' }, /`readPlain` must be/],
    ['a codec that is none', { keys: { k: key }, current: 'k', codec: {} }, /`codec` must be a codec/],
    ['a codec that is null', { keys: { k: key }, current: 'k', codec: null }, /`codec` must be a codec/],
    ['nothing', undefined, /must be a plain object with options/],
  ])('with %s say what to do', (_, options, message) => {
    expect(refusal(options).message).toMatch(message)
  })
})
