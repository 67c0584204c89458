// What may stand in a name, character by character.

import { describe, expect, it } from 'vitest'
import { isPrintable } from '../../../../src/core/text/printable.ts'

describe('printable text', () => {
  it.each(['', ' ', 'a~', '\u00A0', 'é', '٤', '\u202Eabc\u200B', '👩‍👩‍👧', '\uD83D\uDC69\uD83D\uDC69', '\uFFFD', '\uE000'])(
    'is %j',
    (text) => {
      expect(isPrintable(text)).toBe(true)
    },
  )

  it.each([
    ['NUL', '\u0000'],
    ['a tab', '\t'],
    ['a line break', '\n'],
    ['the last of the low control characters', '\u001F'],
    ['delete', '\u007F'],
    ['a high control character', '\u0085'],
    ['the last of the high control characters', '\u009F'],
    ['a line separator', '\u2028'],
    ['a paragraph separator', '\u2029'],
    ['a lone high surrogate', '\uD800'],
    ['a lone low surrogate', '\uDC00'],
    ['a pair the wrong way round', '\uDC00\uD800'],
    ['a high surrogate before a pair', '\uD83D\uD83D\uDC69'],
    ['a low surrogate after a pair', '\uD83D\uDC69\uDC69'],
  ])('has no %s, wherever it stands', (_, bad) => {
    for (const text of [bad, `${bad}a`, `a${bad}`, `a${bad}b`]) expect(isPrintable(text)).toBe(false)
  })

  it('is decided for every single UTF-16 unit', () => {
    const refused = Array.from({ length: 0x10000 }, (_, code) => code).filter(
      (code) => !isPrintable(String.fromCharCode(code)),
    )
    const wanted = [
      [0, 0x1f],
      [0x7f, 0x9f],
      [0x2028, 0x2029],
      [0xd800, 0xdfff],
    ].flatMap(([first, last]) => Array.from({ length: last! - first! + 1 }, (_, at) => first! + at))
    expect(refused).toEqual(wanted)
  })
})
