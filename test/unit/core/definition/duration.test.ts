// A duration that is misread is a timer that fires at the wrong time: every unit, bound and refusal is written out.

import { describe, expect, it } from 'vitest'
import { formatMs, parseDuration, toMs, type Duration } from '../../../../src/core/definition/duration.ts'
import { isHoldfastError } from '../../../../src/core/errors/error.ts'

const hundredYears = 3_155_760_000_000

function refusal(call: () => unknown): string {
  let result: unknown
  try {
    result = call()
  } catch (error) {
    if (isHoldfastError(error, 'INVALID_DURATION')) return error.message
    throw error
  }
  throw new Error(`Accepted as ${String(result)}`)
}

describe('toMs', () => {
  it.each<[Duration, number]>([
    [0, 0],
    [250, 250],
    ['250ms', 250],
    ['1s', 1000],
    ['1 sec', 1000],
    ['1 second', 1000],
    ['30 seconds', 30_000],
    ['5m', 300_000],
    ['5 min', 300_000],
    ['1 minute', 60_000],
    ['5 minutes', 300_000],
    ['2h', 7_200_000],
    ['1 hour', 3_600_000],
    ['2 hours', 7_200_000],
    ['1d', 86_400_000],
    ['1 day', 86_400_000],
    ['2 days', 172_800_000],
    ['1w', 604_800_000],
    ['1 week', 604_800_000],
    ['3 weeks', 1_814_400_000],
    ['1.5 h', 5_400_000],
    ['.5s', 500],
    [hundredYears, hundredYears],
    ['36525 days', hundredYears],
  ])('reads %j as %d ms', (duration, ms) => {
    expect(toMs(duration, 'x')).toBe(ms)
  })

  it('rounds a fraction of a millisecond up, so that nothing is due early', () => {
    expect(toMs(0.2, 'x')).toBe(1)
    expect(toMs(10.5, 'x')).toBe(11)
    expect(toMs('0.0001s', 'x')).toBe(1)
  })

  it('does not take the error of a multiplication for a fraction', () => {
    for (let tenth = 0; tenth <= 1000; tenth++) {
      expect(toMs(`${tenth / 10}s`, 'x')).toBe(tenth * 100)
      expect(toMs(`${tenth / 10} days`, 'x')).toBe(tenth * 8_640_000)
    }
  })

  it.each([Number.NaN, -1, -0.001, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, hundredYears + 1])(
    'refuses %d',
    (ms) => {
      expect(refusal(() => toMs(ms, 'The timeout'))).toContain('The timeout')
    },
  )

  it('refuses a point in time given for a duration in seconds, and what untyped code may pass', () => {
    const pointInTime = '1794700800000 s' as const
    expect(refusal(() => toMs(pointInTime, 'x'))).toContain('over 100 years')
    for (const value of [null, undefined, {}, [], true, 5n]) {
      expect(refusal(() => toMs(value as never, 'x'))).toContain('neither a number nor text')
    }
  })

  it('keeps to what an option allows, both ends included, and says what that is', () => {
    const bounds = { min: 10, max: 2000 }
    for (const ms of [10, 11, 2000]) expect(toMs(ms, 'x', bounds)).toBe(ms)
    expect(refusal(() => toMs('9.9 ms', 'x', { min: 11 }))).toBe('x must be from 11 ms to 100 years. Got "9.9 ms".')
    expect(refusal(() => toMs(0, 'x', bounds))).toBe('x must be from 10 ms to 2 s. Got 0 ms.')
    expect(refusal(() => toMs('1h', 'x', bounds))).toBe('x must be from 10 ms to 2 s. Got "1h".')
    expect(refusal(() => toMs(-1, 'x', bounds))).toContain('negative')
  })

  it('a misspelt unit does not compile', () => {
    // @ts-expect-error: "minuts" is no unit
    const misspelt: Duration = '5 minuts'
    // @ts-expect-error: a number alone in a text has no unit
    const bare: Duration = '500'
    // @ts-expect-error: units are lower case
    const upper: Duration = '5M'
    for (const text of [misspelt, bare, upper]) expect(refusal(() => toMs(text, 'x'))).toContain('Did you mean')
  })
})

describe('parseDuration', () => {
  it.each([
    ['5 minuts', 'Did you mean "minutes"?'],
    ['5M', 'Did you mean "m"?'],
    ['2 Days', 'Did you mean "days"?'],
    ['5 secs', 'Did you mean "sec"?'],
    ['5 msec', 'Did you mean "ms"?'],
    ['100 milliseconds', 'Did you mean "ms"?'],
    ['2 hrs', 'Did you mean "h"?'],
    ['500', 'Did you mean "500 ms"?'],
  ])('says of %j what was probably meant: %s', (text, hint) => {
    expect(refusal(() => parseDuration(text, 'x'))).toContain(hint)
  })

  it.each([
    '',
    ' ',
    'm',
    'abc',
    '5 m m',
    '1h30m',
    '1..2s',
    '--5s',
    '1-2s',
    '5 constructor',
    '5 __proto__',
    '１s',
    '5\nx',
  ])('refuses %j and says what is allowed', (text) => {
    const message = refusal(() => parseDuration(text, 'The option --wait'))
    expect(message).toContain('The option --wait')
    expect(message).toContain('"2 days"')
    expect(message).toContain('weeks')
  })

  it('does not take a name that every object has for a unit', () => {
    for (const unit of ['constructor', 'toString', 'valueOf']) {
      expect(refusal(() => parseDuration(`5 ${unit}`, 'x'))).toContain('unknown unit')
    }
  })

  it('refuses a negative text as negative', () => {
    expect(refusal(() => parseDuration('-5s', 'x'))).toContain('negative')
  })

  it('passes over space around the text', () => {
    expect(parseDuration(' 5 m ', 'x')).toBe(300_000)
  })

  it('refuses an enormous text without reading it, and does not repeat it', () => {
    for (const text of [
      '1'.repeat(5_000_000),
      `${' '.repeat(5_000_000)}1s`,
      `${'1'.repeat(100)}s`,
      `${'.'.repeat(5_000_000)}s`,
    ]) {
      const before = performance.now()
      expect(refusal(() => parseDuration(text, 'x')).length).toBeLessThan(500)
      expect(performance.now() - before).toBeLessThan(1000)
    }
  })
})

describe('formatMs', () => {
  it.each([
    [0, '0 ms'],
    [0.44, '0.4 ms'],
    [250, '250 ms'],
    [999, '999 ms'],
    [999.99, '1 s'],
    [1000, '1 s'],
    [1500, '1.5 s'],
    [59_949, '59.9 s'],
    [59_999, '1 min'],
    [57 * 60_000, '57 min'],
    [3_599_999, '1 h'],
    [5_400_000, '1.5 h'],
    [86_399_999, '1 day'],
    [86_400_000, '1 day'],
    [172_800_000, '2 days'],
    [129_600_000, '1.5 days'],
    [-1500, '-1.5 s'],
    [Number.NaN, 'NaN ms'],
    [Number.POSITIVE_INFINITY, 'Infinity ms'],
  ])('writes %d as %s', (ms, text) => {
    expect(formatMs(ms)).toBe(text)
  })
})
