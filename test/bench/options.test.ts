// The command line of the benchmark, as far as it is about baselines.

import { describe, expect, it } from 'vitest'
import { parseOptions } from '../../bench/options.ts'
import { UsageError } from '../../bench/usage.ts'

describe('the options of a benchmark', () => {
  it('name a baseline to compare with, or one to write', () => {
    expect(parseOptions(['--compare', 'a.json', '--quick'])).toMatchObject({ compare: 'a.json', quick: true })
    expect(parseOptions(['--write-baseline=b.json', '--only', 'runs'])).toMatchObject({
      writeBaseline: 'b.json',
      only: 'runs',
      compare: undefined,
    })
  })

  it.each([
    [
      ['--compare', 'a', '--write-baseline', 'a'],
      '--compare and --write-baseline do not go together: give one of them.',
    ],
    [['--compare', 'a', '--profile', 'runs'], '--compare and --profile do not go together: give one of them.'],
    [['--compare'], '--compare needs a value.'],
    [['--comprae', 'a'], 'There is no option --comprae. Did you mean --compare?'],
    [['--compare', 'a', '--only', 'run'], 'There is no scenario "run". Did you mean runs?'],
  ])('refuse %j in words', (args, words) => {
    expect(() => parseOptions(args)).toThrow(UsageError)
    expect(() => parseOptions(args)).toThrow(words)
  })
})
