import { randomBytes } from 'node:crypto'
import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import type { Place } from '../../src/core/payload/codec.ts'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import { encryptingCodec } from '../../src/encryption/index.ts'
import { expectSame, storable } from '../support/storable.ts'

const keys = { a: randomBytes(32), b: randomBytes(32) }
const codec = encryptingCodec({ keys, current: 'a' })

const name = fc.option(fc.oneof(fc.constantFrom('', 'null', 'a,"b', 'a'), fc.string({ unit: 'binary' })))

const place: fc.Arbitrary<Place> = fc.record({
  namespace: fc.constantFrom('', 'holdfast', 'null'),
  kind: fc.constantFrom('step-succeeded', 'woken', 'signal', 'broadcast'),
  id: name,
  runId: fc.oneof(fc.constantFrom('r', 'r"', 'r,1', '\uD800', '\uDFFF', '\uFFFD'), fc.string({ unit: 'binary' })),
  seq: fc.integer({ min: 1, max: 5 }),
  name,
})

function isCorrupt(act: () => unknown): boolean {
  try {
    act()
  } catch (error) {
    if (isHoldfastError(error, 'PAYLOAD_CORRUPT')) return true
    throw error
  }
  return false
}

describe('the encrypting codec', () => {
  it('gives every storable value back at its place', () => {
    fc.assert(
      fc.property(storable, place, (value, at) => {
        expectSame(codec.decode(codec.encode(value, at), at), value)
      }),
      { numRuns: 1000 },
    )
  })

  it('reads a text at no other place', () => {
    fc.assert(
      fc.property(place, place, (here, there) => {
        const isElsewhere = (Object.keys(here) as (keyof Place)[]).some((part) => here[part] !== there[part])
        const text = codec.encode('secret', here)
        expect(isCorrupt(() => codec.decode(text, there))).toBe(isElsewhere)
      }),
      { numRuns: 1000 },
    )
  })

  it('reads no text in which a character was changed, lost or added, lenient or not', () => {
    const at: Place = { namespace: '', runId: 'r', seq: 1, kind: 'step-succeeded', name: null, id: null }
    const lenient = encryptingCodec({ keys, current: 'b', readPlain: true })
    const character = fc.oneof(
      fc.constantFrom(...Array.from('abAB019-_.+/= \n')),
      fc.string({ unit: 'binary', maxLength: 1 }),
    )
    fc.assert(
      fc.property(storable, fc.nat(), fc.nat({ max: 1 }), character, (value, position, lost, added) => {
        const text = codec.encode(value, at)
        const cut = position % text.length
        const changed = text.slice(0, cut) + added + text.slice(cut + lost)
        if (changed === text) return
        for (const one of [codec, lenient]) expect(isCorrupt(() => one.decode(changed, at))).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  it('reads no text in which any one bit flipped', () => {
    const at: Place = { namespace: '', runId: 'r', seq: 1, kind: 'step-succeeded', name: 'step', id: null }
    const text = codec.encode({ amount: 7 }, at)
    const cut = text.lastIndexOf('.') + 1
    const body = Buffer.from(text.slice(cut), 'base64url')
    for (let bit = 0; bit < body.length * 8; bit++) {
      const copy = Buffer.from(body)
      copy[bit >> 3] = copy[bit >> 3]! ^ (1 << (bit & 7))
      expect(isCorrupt(() => codec.decode(text.slice(0, cut) + copy.toString('base64url'), at))).toBe(true)
    }
  })

  it('throws nothing but PAYLOAD_CORRUPT, whatever the text', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .tuple(fc.constantFrom('enc1.a.', 'enc1.b.', 'enc1.', 'enc1..', 'enc2.a.'), fc.base64String())
        .map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(text, place, (given, at) => {
        expect(isCorrupt(() => codec.decode(given, at))).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})
