import { describe, expect, it } from 'vitest'
import { parseInput } from '../../src/cli/json-input.ts'
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

  it('is told by line and column, with what stands there and how to quote it', () => {
    expect(faultOf('{\n  "a": 1,\n  b: 2\n}').message).toBe(
      'The input is not JSON: line 3, column 3: it goes wrong at "b: 2\\n}". ' +
        `Text needs double quotes, and a shell needs single ones around it all: '{"id":"42"}'.`,
    )
    expect(faultOf('{"a":').message).toContain('line 1, column 6: it ends too early')
    expect(faultOf(' ').message).toContain('is empty')
  })

  it('is found also where nesting is deeper than any stack', () => {
    const depth = 200_000
    expect(faultOf(`${'['.repeat(depth)}x`).position).toBe(depth)
  })

  it('is never echoed raw', () => {
    const texts = poison.map(({ value }) => value()).filter((value) => typeof value === 'string')
    for (const text of texts.filter((one) => !one.startsWith('{'))) expect(faultOf(text).message).not.toMatch(hazardous)
  })

  it('is JSON otherwise', () => {
    expect(parseInput(' {"a":[1,-0.5e3,true,null,"\\u00e9"]} ', 'it')).toEqual({ a: [1, -500, true, null, 'é'] })
  })
})
