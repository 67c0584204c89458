// Payloads with a data subject: what a destroyed key takes away, and what it leaves.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { jsonCodec, type Place } from '../../../src/core/payload/codec.ts'
import { Payloads } from '../../../src/core/payload/payload.ts'
import { encryptingCodec, subjectKeysIn, type SubjectKeys } from '../../../src/encryption/index.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 3, kind: 'event', name: 'Signed', id: null }
const keys = { first: randomBytes(32), second: randomBytes(32) }
const of = (value: unknown): string | null => (value as { customer?: string } | null)?.customer ?? null

/** Keys in memory. */
function memoryKeys(): SubjectKeys & { destroy: (id: string) => void } {
  const known = new Map<string, Uint8Array | null>()
  return {
    forSubject(id) {
      if (!known.has(id)) known.set(id, randomBytes(32))
      return known.get(id) ?? null
    },
    destroy: (id) => void known.set(id, null),
  }
}

const ada = { customer: 'ada', mail: 'ada@example.com' }
const bob = { customer: 'bob', mail: 'bob@example.com' }
const erased = expect.objectContaining({
  code: 'PAYLOAD_CORRUPT',
  details: expect.objectContaining({ erased: true }) as object,
}) as Error

function codecWith(subjectKeys: SubjectKeys, current: keyof typeof keys = 'first') {
  return encryptingCodec({ keys, current, subjects: { of, keys: subjectKeys } })
}

describe('a payload with a data subject', () => {
  it('IF-V2 is read until its key is destroyed; others are unharmed, and nothing new of the subject is written', () => {
    const subjectKeys = memoryKeys()
    const codec = codecWith(subjectKeys)
    const [texts, plain] = [[ada, bob].map((value) => codec.encode(value, place)), codec.encode('no subject', place)]
    expect(texts[0]).toMatch(/^enc2\.first\.YWRh\.[\w-]+$/)
    expect(plain).toMatch(/^enc1\.first\.[\w-]+$/)
    expect(texts.map((text) => codec.decode(text, place))).toEqual([ada, bob])
    subjectKeys.destroy('ada')
    expect(() => codec.decode(texts[0] ?? '', place)).toThrow(erased)
    expect(codec.decode(texts[1] ?? '', place)).toEqual(bob)
    expect(codec.decode(plain, place)).toBe('no subject')
    expect(() => codec.encode(ada, place)).toThrow('its data subject was erased')
    // The fact that it has ended is no data of the subject.
    const end = { ...place, kind: 'succeeded' } as const
    const left = codec.encode(ada, end)
    expect(left).toBe('enc2.first.YWRh.')
    expect(() => codec.decode(left, end)).toThrow(erased)
  })

  it('IF-V2 is not opened by the key of the codec alone, by that of another subject, or under the name of another', () => {
    const codec = codecWith(memoryKeys())
    const text = codec.encode(ada, place)
    expect(() => codecWith(memoryKeys()).decode(text, place)).toThrow('does not open with the key "first"')
    expect(() => encryptingCodec({ keys, current: 'first' }).decode(text, place)).toThrow(
      '`subjects` of encryptingCodec() is not set',
    )
    const renamed = text.replace('.YWRh.', `.${Buffer.from('bob').toString('base64url')}.`)
    expect(() => codec.decode(renamed, place)).toThrow('does not open')
    expect(() => codec.decode(text.replace('enc2.first.YWRh', 'enc1.first'), place)).toThrow('does not open')
    expect(() => codec.decode(text, { ...place, seq: 4 })).toThrow('does not open')
    for (const broken of [
      'enc2.first.',
      'enc2.first.YWRh',
      `${text}.x`,
      text.replace('.YWRh.', '.YWRh=.'),
      'enc2.first..AAAA',
    ]) {
      expect(() => codec.decode(broken, place)).toThrow('not a whole encrypted text')
    }
  })

  it('IF-V2 is encrypted anew with the key of the codec; what was erased loses its ciphertext then', () => {
    const subjectKeys = memoryKeys()
    const before = codecWith(subjectKeys)
    const texts = [ada, bob].map((value) => before.encode(value, place))
    subjectKeys.destroy('ada')
    const after = codecWith(subjectKeys, 'second')
    const anew = texts.map((text) => after.rekey?.(text, place) ?? '')
    expect(anew[0]).toBe('enc2.second.YWRh.')
    expect(() => after.decode(anew[0] ?? '', place)).toThrow(erased)
    expect(after.keyOf?.(anew[1] ?? '')).toBe('second')
    expect(after.decode(anew[1] ?? '', place)).toEqual(bob)
    expect(after.rekey?.(anew[1] ?? '', place)).toBe(anew[1])
  })

  it('IF-V2 that is about several subjects is refused, also where only the parts of a snapshot are', () => {
    const codec = codecWith(memoryKeys())
    const snapshot = { state: ada, timers: [{ input: null }], effects: [['mail#4', 4, 1, ada]], dead: [] }
    const at = { ...place, kind: 'snapshot', name: null } as const
    expect(codec.encode(snapshot, at)).toMatch(/^enc2\.first\.YWRh\./)
    expect(() => codec.encode({ ...snapshot, timers: [{ input: bob }] }, at)).toThrow('it is about 2 data subjects')
    expect(codec.encode({ ...snapshot, state: 5, effects: [] }, at)).toMatch(/^enc1\./)
  })

  it('IF-V2 refuses a port or a function that does not do what it must, and records failures all the same', () => {
    const wrong = (forSubject: () => unknown) => codecWith({ forSubject } as never)
    expect(() => wrong(() => 'a key').encode(ada, place)).toThrow('must return 32 bytes, or null')
    expect(() => wrong(() => randomBytes(16)).encode(ada, place)).toThrow('must return 32 bytes, or null')
    const subjects = (given: unknown) => encryptingCodec({ keys, current: 'first', subjects: given as never })
    expect(() => subjects({ of })).toThrow('`subjects` of encryptingCodec() must have of')
    expect(() => subjects({ of, keys: memoryKeys(), off: 1 })).toThrow('has no option "off"')
    const thrower = subjects({
      of: () => {
        throw new Error('no')
      },
      keys: memoryKeys(),
    })
    expect(() => thrower.encode(ada, place)).toThrow('subjects.of of encryptingCodec() threw: no')
    expect(() => subjects({ of: () => 5, keys: memoryKeys() }).encode(ada, place)).toThrow('must return an id')
    const failed = { ...place, kind: 'failed' } as const
    const payloads = new Payloads(thrower)
    expect(payloads.decode(payloads.encodeFailure(new Error('secret'), failed), failed)).toBeInstanceOf(Error)
  })
})

describe('keys of data subjects in a folder', () => {
  function folder(): string {
    const place = mkdtempSync(join(tmpdir(), 'holdfast-subjects-'))
    onTestFinished(() => rmSync(place, { recursive: true }))
    return join(place, 'keys')
  }

  it('IF-V2 are made once, for every process, and destroyed once, for good', () => {
    const path = folder()
    const [one, other] = [subjectKeysIn(path), subjectKeysIn(path)]
    const key = one.forSubject('ada')
    expect(key).toHaveLength(32)
    expect(other.forSubject('ada')).toEqual(key)
    expect(other.forSubject('bob')).not.toEqual(key)
    const [file = ''] = readdirSync(path).filter((name) =>
      readFileSync(join(path, name)).equals(Buffer.from(key ?? [])),
    )
    expect(statSync(join(path, file)).mode & 0o777).toBe(0o600)
    one.destroy('ada')
    expect([one.forSubject('ada'), other.forSubject('ada')]).toEqual([null, null])
    expect(readFileSync(join(path, file))).toHaveLength(0)
    one.destroy('ada')
    expect(subjectKeysIn(path).forSubject('ada')).toBeNull()
    expect(one.forSubject('bob')).toHaveLength(32)
  })

  it('IF-V2 of a subject that has none yet is destroyed before it is made', () => {
    const subjectKeys = subjectKeysIn(folder())
    subjectKeys.destroy('eve')
    expect(subjectKeys.forSubject('eve')).toBeNull()
  })

  it('IF-V2 need a folder', () => {
    expect(() => subjectKeysIn('')).toThrow('takes the path of a folder')
    expect(jsonCodec().isPlaceless).toBe(true)
  })
})
