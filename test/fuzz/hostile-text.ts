// Texts to fuzz with: what has broken parsers, terminals, databases and people before, and whatever comes of joining, cutting and
// repeating it.

import { fc } from '../support/properties.ts'

export const someId = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'

export const hostileTexts: readonly string[] = [
  '',
  ' ',
  '\u0000',
  '\n',
  '\r\n',
  '\u001B]52;c;ZXZpbA==\u0007',
  '\u001B[2J\u001B[1;1H\u001B[8m\u001B[31m',
  '\u009B2J',
  '\u202E\u2066abc\u2069',
  '\u200B\u200C\u200D\uFEFF\u00AD\u3164\u{E0041}',
  '\uD800',
  '\uDC00\uD800',
  '👩‍👩‍👧 ❤️ 1️⃣',
  'می‌خواهم',
  '%00',
  '%',
  '%s%n%o',
  '%E0%A4%A',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'toString',
  "'; drop table runs; --",
  '$(touch evil)',
  '-',
  '--',
  '--json',
  '--=',
  '-0',
  '1e999',
  '9'.repeat(400),
  'NaN',
  'Infinity',
  '1h',
  '2026-11-16T08:00:00Z',
  '+275760-09-13T00:00:00.001Z',
  someId,
  someId.toUpperCase(),
  `${someId} letter`,
  `${someId}\n`,
  'offload:',
  'offload:../../x',
  'inline:offload:x',
  '\u0001plain:{"$error":{"name":"Error","message":"m","props":{"paid":1}}}',
  'a'.repeat(5_000),
  '[['.repeat(2_000),
  '{"a":'.repeat(1_500),
  '"\\'.repeat(500),
]

/** Mostly made of the above, sometimes of anything. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ maxLength: 40 }) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...hostileTexts), fc.constantFrom(...hostileTexts), fc.nat(50), fc.nat(50))
      .map(([one, other, cut, at]) => one.slice(0, at) + other.slice(cut)),
  },
)

/** A text of this kind, with something left out, put in or doubled. */
export function mutated(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(text, fc.nat(), fc.nat(8), hostileText).map(([whole, place, length, junk]) => {
    const at = place % (whole.length + 1)
    const put = place % 3 === 0 ? whole.slice(at, at + length * 4).repeat(2) : junk
    return whole.slice(0, at) + put + whole.slice(at + length)
  })
}
