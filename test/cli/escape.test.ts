import { describe, expect, it } from 'vitest'
import { jsonLine, messageOf } from '../../src/cli/output/plain-json.ts'
import { harmlessJson, visible } from '../../src/core/text/printable.ts'
import { poison, throwing } from '../poison.ts'
import { hazardous } from './world.ts'

const texts = poison.map(({ value }) => value()).filter((value) => typeof value === 'string')

describe('text from data, for a person', () => {
  it('shows what would move the cursor, turn the writing or break the line', () => {
    expect(visible('\u001B[2J')).toBe('\\x1b[2J')
    expect(visible('a\nb\r\tc')).toBe('a\\nb\\r\\tc')
    expect(visible('\u009B31m\u007F')).toBe('\\x9b31m\\x7f')
    expect(visible('\u202Eabc\u2066\u2028')).toBe('\\u{202e}abc\\u{2066}\\u{2028}')
    expect(visible('\uD800')).toBe('\\u{d800}')
    expect(visible('\u{E0041}')).toBe('\\u{e0041}')
  })

  it.each([
    ['letters', 'Grüße 你好'],
    ['a family and an astronaut', '👩‍👩‍👧 👩🏽‍🚀'],
    ['a red heart and a keycap', '❤️ 1️⃣'],
    ['Persian with a non-joiner', 'می‌خواهم'],
    ['Hindi with a joiner', 'क्‍ष'],
  ])('leaves %s, with the joiners that they need', (_, text) => {
    expect(visible(text)).toBe(text)
  })

  it.each([
    ['a joiner between letters that need none', 'order\u200D-42', 'order\\u{200d}-42'],
    ['a non-joiner at the end', 'order-42\u200C', 'order-42\\u{200c}'],
    ['a chooser after a digit', '1\uFE0F', '1\\u{fe0f}'],
    ['a filler that is drawn as nothing', 'a\u3164b', 'a\\u{3164}b'],
    ['a soft hyphen', 'a\u00ADb', 'a\\xadb'],
    ['a variation selector of the second kind', 'a\u{E0100}', 'a\\u{e0100}'],
  ])('shows what would make two keys look alike: %s', (_, text, shown) => {
    expect(visible(text)).toBe(shown)
  })

  it('lets no character through that a terminal could obey, or a reader not see', () => {
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const character = String.fromCodePoint(code)
      if (hazardous.test(visible(character))) throw new Error(`U+${code.toString(16)} gets through`)
      const among = visible(`a${character}b`)
      if (hazardous.test(among)) throw new Error(`U+${code.toString(16)} gets through among letters`)
      if (visible(among) !== among) throw new Error(`U+${code.toString(16)} is not the same when it is shown again`)
    }
    expect(texts.filter((text) => hazardous.test(visible(text)))).toEqual([])
  })

  it('escapes in JSON what JSON leaves, and it stays the same value', () => {
    for (const text of texts) {
      const json = harmlessJson(JSON.stringify({ [text]: text }))
      expect(hazardous.test(json)).toBe(false)
      expect(JSON.parse(json)).toEqual({ [text]: text })
    }
  })
})

describe('a payload as JSON', () => {
  it('is readable where JSON has no such value', () => {
    const error = Object.assign(new RangeError('too far', { cause: 'why' }), { limit: 3n })
    expect(jsonLine({ at: new Date(0), set: new Set([1]), map: new Map([['a', 1]]), none: undefined, error })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","set":[1],"map":[["a",1]],"none":null,' +
        '"error":{"name":"RangeError","message":"too far","limit":"3","cause":"why"}}',
    )
    expect(jsonLine([Number.NaN, -Infinity, 2n ** 70n, Uint8Array.of(1, 2)])).toBe(
      '["NaN","-Infinity","1180591620717411303424","AQI="]',
    )
    expect(jsonLine(undefined)).toBe('null')
  })

  it('keeps a key that is called __proto__', () => {
    expect(jsonLine(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}')
  })

  // The corpus has values that unfold without end; no store has, because nothing so large can be stored.
  const printable = poison.filter(({ name }) => !/unfolds|holes|300 MB/.test(name))

  it.each(printable.map((one) => [one.name, one] as const))('is one harmless line: %s', (_, { value }) => {
    const line = jsonLine(value())
    expect(hazardous.test(line)).toBe(false)
    expect(line).not.toContain('\n')
    expect(() => JSON.parse(line) as unknown).not.toThrow()
  })

  it('shows an error by its message, whatever was thrown', () => {
    expect(messageOf(new Error('no'))).toBe('no')
    expect(messageOf(new TypeError(''))).toBe('TypeError')
    expect(messageOf('plain text')).toBe('plain text')
    expect(messageOf({ code: 5 })).toBe('{"code":5}')
    expect(messageOf({ toString: throwing, toJSON: throwing })).toBe('{"toString":"[function]","toJSON":"[function]"}')
  })
})
