// What processes send one another survives the way, fits into what Postgres takes, and nobody else can harm us with it.

import { describe, expect, it } from 'vitest'
import type { Hint } from '../../../../../src/store.ts'
import { hintsOf, noticesOf } from '../../../../../src/stores/postgres/hints/notice.ts'
import { noticeSeal } from '../../../../../src/stores/postgres/hints/notice-seal.ts'

const ready = (type: string): Hint => ({ kind: 'ready', type })
const ended = (runId: string): Hint => ({ kind: 'ended', runId })
const control = (runId: string): Hint => ({ kind: 'control', runId })
const messages = (runId: string): Hint => ({ kind: 'message', runId })

describe('a notice', () => {
  it('notifies others each hint once, and ourselves nothing', () => {
    const hints = [
      ready('a'),
      messages('2'),
      control('3'),
      ended('1'),
      ready('a'),
      ready('b'),
      messages('2'),
      control('3'),
    ]
    const [text, ...rest] = noticesOf(hints, 'me')
    expect(rest).toEqual([])
    expect(hintsOf(text ?? '', 'other')).toEqual([ready('a'), ready('b'), ended('1'), messages('2'), control('3')])
    expect(hintsOf(text ?? '', 'me')).toEqual([])
  })

  it('of nothing is none', () => {
    expect(noticesOf([], 'me')).toEqual([])
  })

  it('is never longer than Postgres takes, however long the texts are in bytes', () => {
    const hints = Array.from({ length: 3_000 }, (_, index) =>
      index % 2 === 0 ? ready(`😀"${index}`) : ended(`é${index}`),
    )
    const notices = noticesOf(hints, 'f47ac10b-58cc-4372-a567-0e02b2c3d479')
    expect(notices.length).toBeGreaterThan(1)
    const sealing = noticeSeal('key', 'here')
    expect(Math.max(...notices.map((text) => Buffer.byteLength(sealing.seal(text))))).toBeLessThan(8_000)
    const given = notices.flatMap((text) => hintsOf(text, 'other'))
    expect(new Set(given.map((hint) => JSON.stringify(hint)))).toEqual(
      new Set(hints.map((hint) => JSON.stringify(hint))),
    )
  })

  it.each(['', 'hello', '{', 'null', '5', '"text"', '[]', '{}', '{"from":1}', '{"from":"x","ready":7,"ended":{}}'])(
    'that is not one of ours means nothing: %s',
    (text) => {
      expect(hintsOf(text, 'me')).toEqual([])
    },
  )

  it('from a process that knows more than this one says what this one knows', () => {
    expect(hintsOf('{"from":"x","ready":["a",1],"ended":[null,"2"],"later":true}', 'me')).toEqual([
      ready('a'),
      ended('2'),
    ])
  })
})

describe('a sealed notice', () => {
  const text = '{"from":"me","ready":["billing.charge"],"ended":["01900000-0000-7000-8000-000000000000"]}'
  const one = noticeSeal('key', 'here')
  const other = noticeSeal('key', 'here')

  it('is read by a process that has the key, and reveals to a stranger who listens no type and no run', () => {
    const sealed = one.seal(text)
    expect(sealed).toMatch(/^[\w-]+$/)
    expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toMatch(/billing|01900000/)
    expect(other.open(sealed)).toBe(text)
    expect(one.seal(text)).not.toBe(sealed)
  })

  it('that is forged, changed, cut, of another key or of another channel is dropped', () => {
    const sealed = one.seal(text)
    const bytes = Buffer.from(sealed, 'base64url')
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(other.open(changed.toString('base64url'))).toBeNull()
      expect(other.open(bytes.subarray(0, at).toString('base64url'))).toBeNull()
    }
    for (const forged of ['', text, 'echo me', 'é'.repeat(100), 'A'.repeat(7_999)]) {
      expect(other.open(forged)).toBeNull()
    }
    expect(other.open(noticeSeal('another', 'here').seal(text))).toBeNull()
    expect(other.open(noticeSeal('key', 'there').seal(text))).toBeNull()
    expect(other.open(sealed), 'and none of that keeps the right one from being heard').toBe(text)
  })

  it('that was overheard and is sent again is dropped', () => {
    const sealed = one.seal(text)
    expect(other.open(sealed)).toBe(text)
    for (let times = 0; times < 3; times += 1) expect(other.open(sealed)).toBeNull()
    for (let more = 0; more < 4_000; more += 1) expect(other.open(one.seal('more'))).toBe('more')
    expect(other.open(sealed)).toBeNull()
  })
})
