// The command line of the soak: what it means, and how it refuses what it does not know.

import { describe, expect, it } from 'vitest'
import { parseOptions } from '../../bench/soak/options.ts'
import { scheduleOf } from '../../bench/soak/schedule.ts'
import { UsageError } from '../../bench/usage.ts'

describe('the options of a soak', () => {
  it('are those of half an hour on SQLite, unless the options say otherwise', () => {
    const usual = { help: false, minutes: 30, store: 'sqlite', share: 0.7, seed: 1, out: 'soak' }
    expect(parseOptions([])).toEqual(usual)
    const given = ['--minutes', '2.5', '--store=postgres://h/d', '--share', '1', '--seed', '9', '--out', 'a/b', '-h']
    expect(parseOptions(given)).toEqual({
      help: true,
      minutes: 2.5,
      store: 'postgres://h/d',
      share: 1,
      seed: 9,
      out: 'a/b',
    })
  })

  it.each([
    [['--minute', '3'], 'There is no option --minute. Did you mean --minutes?'],
    [['--minutes', 'long'], '--minutes is a number above 0, up to 10000. Got "long".'],
    [['--share', '0'], '--share is a number above 0, up to 2. Got "0".'],
    [['--store', 'memory'], 'There is no store "memory" to soak. It lives in one process, and a soak needs several.'],
    [['--store', 'postgers://u:secret@h'], 'There is no store "postgers" to soak. Did you mean postgres?'],
    [['30'], '"30" is not an option.'],
  ])('refuse %j in words', (args, words) => {
    const parse = () => parseOptions(args)
    expect(parse).toThrow(UsageError)
    expect(parse).toThrow(words)
    expect(parse).not.toThrow('secret')
  })
})

describe('the time of a soak', () => {
  it('is spent on the load but for half a minute', () => {
    expect(scheduleOf(30)).toEqual({
      calibrateMs: 25_000,
      loadMs: 1_775_000,
      sampleMs: 5_000,
      progressMs: 10_000,
      doctorMs: 60_000,
    })
  })

  it('is looked at more often if it is short', () => {
    expect(scheduleOf(1)).toEqual({
      calibrateMs: 15_000,
      loadMs: 45_000,
      sampleMs: 1_000,
      progressMs: 3_000,
      doctorMs: 6_000,
    })
  })
})
