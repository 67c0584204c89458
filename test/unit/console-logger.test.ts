// What the default logger puts on the console, whatever it is given.

import { describe, expect, it, vi } from 'vitest'
import { HoldfastError } from 'holdfast'
import { createConsoleLogger } from '../../src/console-logger.ts'
import { hazardous } from '../cli/world.ts'

function logged(message: string, details?: Record<string, unknown>): string {
  const to = { info: vi.fn(), warn: vi.fn(), error: vi.fn() }
  createConsoleLogger(to).warn(message, details)
  expect(to.warn).toHaveBeenCalledTimes(1)
  // A second argument would make the first a format: `%s` of a message would eat it.
  expect(to.warn.mock.calls[0]).toHaveLength(1)
  return to.warn.mock.calls[0]?.[0] as string
}

const attack = '\u001B]52;c;ZXZpbA==\u0007\u001B[2K\r\nERROR forged line\u202E\u200B\u009B2J'

describe('the default logger', () => {
  it('prints a message with its details on one line', () => {
    expect(logged('A run was recovered.')).toBe('A run was recovered.')
    expect(logged('A run was recovered.', { runId: 'r-1', crashes: 2 })).toBe(
      "A run was recovered. { runId: 'r-1', crashes: 2 }",
    )
  })

  it('lets no line break, escape sequence or hidden character of a message through', () => {
    const text = logged(`It failed: ${attack}`)
    expect(text).not.toMatch(hazardous)
    expect(text).not.toContain('\n')
    expect(text).toContain(String.raw`\x1b]52;c;`)
  })

  it.each([
    ['a text', attack],
    ['a key', { [attack]: 1 }],
    ['a list', [[attack]]],
    ['an error below', { cause: new Error(attack) }],
    ['an object that prints itself', { [Symbol.for('nodejs.util.inspect.custom')]: () => attack }],
  ])('lets none of a detail through: %s', (_, value) => {
    const text = logged('Something was logged.', { value })
    expect(text).not.toMatch(hazardous)
    expect(text).not.toContain('\n')
  })

  it('prints an error by its message, and its frames below, indented', () => {
    const error = new TypeError(`first\n    at forged (evil.ts:1:1)\nERROR forged line ${attack}`)
    const [first, ...frames] = logged('A step failed.', { error, attempt: 1 }).split('\n')
    expect(first).toContain("A step failed. { error: 'TypeError: first")
    expect(first).toContain('attempt: 1')
    expect(frames.length).toBeGreaterThan(0)
    for (const frame of frames) expect(frame).toMatch(/^ {4}at /)
    expect([first, ...frames].join('')).not.toMatch(hazardous)
  })

  it('prints the diff of a drift once, line by line', () => {
    const diff = 'The code changed.\n- entry 2: step "a"\n+ the code asks for: step "b"'
    const error = new HoldfastError('DRIFT', diff)
    const [first, ...more] = logged(`Run r is paused (drift): ${diff}`, { run: 'r', error }).split('\n')
    expect(first).toBe("Run r is paused (drift): The code changed. { run: 'r', error: 'HoldfastError' }")
    expect(more.slice(0, 2)).toEqual(['    - entry 2: step "a"', '    + the code asks for: step "b"'])
  })

  it('takes a percent sign for one', () => {
    expect(logged('50 %s done %o', { left: 3 })).toBe('50 %s done %o { left: 3 }')
  })

  it('is not kept from its line by what cannot be read', () => {
    const stackless = Object.assign(new Error('no stack'), { stack: undefined })
    expect(logged('It failed.', { error: stackless })).toBe("It failed. { error: 'Error: no stack' }")
  })
})
