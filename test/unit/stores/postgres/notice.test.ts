// What processes tell one another survives the way, fits into what Postgres takes, and nobody else can harm us with it.

import { describe, expect, it } from 'vitest'
import type { Hint } from '../../../../src/store.ts'
import { hintsOf, noticesOf } from '../../../../src/stores/postgres/notice.ts'

const ready = (type: string): Hint => ({ kind: 'ready', type })
const ended = (runId: string): Hint => ({ kind: 'ended', runId })
const mail = (runId: string): Hint => ({ kind: 'mail', runId })

describe('a notice', () => {
  it('tells others each hint once, and ourselves nothing', () => {
    const [text, ...rest] = noticesOf([ready('a'), mail('2'), ended('1'), ready('a'), ready('b'), mail('2')], 'me')
    expect(rest).toEqual([])
    expect(hintsOf(text ?? '', 'other')).toEqual([ready('a'), ready('b'), ended('1'), mail('2')])
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
    expect(Math.max(...notices.map((text) => Buffer.byteLength(text)))).toBeLessThan(8_000)
    const told = notices.flatMap((text) => hintsOf(text, 'other'))
    expect(new Set(told.map((hint) => JSON.stringify(hint)))).toEqual(
      new Set(hints.map((hint) => JSON.stringify(hint))),
    )
  })

  it.each(['', 'hello', '{', 'null', '5', '"text"', '[]', '{}', '{"from":1}', '{"from":"x","ready":7,"ended":{}}'])(
    'that is not one of ours tells nothing: %s',
    (text) => {
      expect(hintsOf(text, 'me')).toEqual([])
    },
  )

  it('from somebody who knows more than we do tells what we know', () => {
    expect(hintsOf('{"from":"x","ready":["a",1],"ended":[null,"2"],"later":true}', 'me')).toEqual([
      ready('a'),
      ended('2'),
    ])
  })
})
