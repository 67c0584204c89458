import { describe, expect, it } from 'vitest'
import type { Call } from '../../src/cli/command-call.ts'
import { inputOf } from '../../src/cli/input/input-argument.ts'
import { parseInput } from '../../src/cli/input/json-input.ts'
import { isHoldfastError } from '../../src/index.ts'
import { poison } from '../poison.ts'
import { hazardous } from './world.ts'

function faultOf(text: string): { readonly message: string; readonly position: unknown } {
  try {
    parseInput(text, 'The input')
  } catch (error) {
    if (isHoldfastError(error, 'INVALID_INPUT')) return { message: error.message, position: error.details['position'] }
    throw error
  }
  throw new Error(`${text} was taken for JSON`)
}

describe('input that is not JSON', () => {
  it.each([
    ['{a:1}', 1],
    ['abc', 0],
    ["{'a':1}", 1],
    ['{"a":', 5],
    ['{"a" 1}', 5],
    ['{"a":1,}', 7],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['{"a":1} x', 8],
    ['[1}', 2],
    ['"open', 0],
    ['"a\nb"', 0],
    ['"\\x"', 0],
    ['[01]', 2],
    ['[True]', 1],
    ['[tRue]', 1],
    ['{1:2}', 1],
    ['nul', 0],
    ['[[[[[[', 6],
    ['-', 0],
  ])('%j goes wrong at %d', (text, position) => {
    expect(faultOf(text).position).toBe(position)
  })

  it('is named by line and column, with what stands there and how to quote it', () => {
    expect(faultOf('{\n  "a": 1,\n  b: 2\n}').message).toBe(
      'The input is not JSON: line 3, column 3: it goes wrong at "b: 2\\n}". ' +
        `Text needs double quotes, and a shell needs single ones around it all: '{"id":"42"}'.`,
    )
    expect(faultOf('{"a":').message).toContain('line 1, column 6: it ends too early')
    expect(faultOf(' ').message).toContain('is empty')
  })

  it.each([
    ['{\\"a": 1}', 1],
    ['"\\N"', 0],
    ['"\\u12G4"', 0],
    ['"\\u12', 0],
    ['"\\', 0],
    ['[1e]', 2],
    ['[1.5E+9,"\\u00E9\\n\u007f" 1]', 20],
    ['["a","b]', 5],
    ['{"a":1,"b":nulL}', 11],
  ])('%j goes wrong at %d, also in its escapes and numbers', (text, position) => {
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError)
    expect(faultOf(text).position).toBe(position)
  })

  it('is never echoed raw', () => {
    const texts = poison.map(({ value }) => value()).filter((value) => typeof value === 'string')
    for (const text of texts.filter((one) => !one.startsWith('{'))) expect(faultOf(text).message).not.toMatch(hazardous)
  })

  it('is JSON otherwise', () => {
    expect(parseInput(' {"a":[1,-0.5e3,true,null,"\\u00e9"]} ', 'it')).toEqual({ a: [1, -500, true, null, 'é'] })
  })
})

describe('fifteen megabytes of input', () => {
  const long = 15_000_000

  it.each<[string, () => string, number]>([
    ['one text without an end', () => `"${'a'.repeat(long)}`, 0],
    ['one text with a line break at its end', () => `["${'ä'.repeat(long)}\n"]`, 1],
    ['one text of escapes, the last of which is none', () => `"${'\\n'.repeat(long / 2)}\\x"`, 0],
    ['white space before a slip', () => `${' '.repeat(long)}x`, long],
    ['line breaks before a slip', () => `${'\n'.repeat(long)}x`, long],
    ['one number before a slip', () => `${'1'.repeat(long)}x`, long],
    ['short texts, the last of which has no end', () => `[${'"a",'.repeat(1_000_000)}"b`, 4_000_001],
    ['closed brackets', () => `[${'[],'.repeat(500_000)}]`, 1_500_001],
  ])('%s overflow no stack: the place is named', (_, make, position) => {
    expect(faultOf(make()).position).toBe(position)
  })

  it('is named by the line also among millions of lines', () => {
    expect(faultOf(`${'\n'.repeat(long)} x`).message).toContain(`line ${long + 1}, column 2`)
  })

  it.each([
    ['that only open', () => '['.repeat(long)],
    ['that are closed again', () => `${'['.repeat(long / 2)}${']'.repeat(long / 2)}`],
    ['of objects', () => '{"a":'.repeat(long / 5)],
  ])('of brackets %s are refused before a parser sees them', (_, make) => {
    expect(faultOf(make()).message).toBe(
      'The input is nested deeper than 1000 levels, and no codec stores that. Flatten it.',
    )
  })
})

describe('input of twenty megabytes', () => {
  const fault =
    'is longer than 16777216 characters (16 MiB), the most that the command line reads. ' +
    'Store it elsewhere and pass a reference.'

  it.each([
    ['of brackets', () => '['.repeat(20_000_000)],
    ['of one text that breaks off', () => `"${'a'.repeat(20_000_000)}`],
    ['that would be JSON', () => `"${'a'.repeat(20_000_000)}"`],
  ])('%s is refused by its size', (_, make) => {
    expect(faultOf(make()).message).toBe(`The input ${fault}`)
  })

  it('from a pipe or a file without an end is read no further than that', async () => {
    let read = 0
    const endless = (async function* () {
      for (;;) {
        read += 1
        yield ' '.repeat(1_000_000)
      }
    })()
    const call = { io: { cwd: '/', stdin: endless } } as unknown as Call
    await expect(inputOf(call, 'input', '-', undefined)).rejects.toThrow(`The text from standard input ${fault}`)
    expect(read).toBe(17)
    await expect(inputOf(call, 'input', undefined, '/dev/zero')).rejects.toThrow(`The file "/dev/zero" ${fault}`)
  })
})
