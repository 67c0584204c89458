// Parses JSON from the command line, a file or a pipe, and locates a syntax error, which not every runtime does. The text
// may be anything and of any length, so nothing here recurses, and no pattern repeats an alternation: both would overflow
// the stack.

import { HoldfastError } from '../../core/errors/error.ts'
import { deepest, isDeeperThan } from '../../core/payload/json-decode.ts'
import { visible } from '../../core/text/printable.ts'

/** Sixteen times the default size limit of a payload. */
export const longestInput = 16 * 1024 * 1024

/** The value of a JSON text. `where` names its origin in the error. */
export function parseInput(text: string, where: string): unknown {
  if (text.length > longestInput) throw tooLong(where)
  if (isDeeperThan(text, deepest)) {
    throw new HoldfastError(
      'INVALID_INPUT',
      `${where} is nested deeper than ${deepest} levels, and no codec stores that. Flatten it.`,
    )
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw invalid(text, where)
  }
}

export function tooLong(where: string): HoldfastError {
  return new HoldfastError(
    'INVALID_INPUT',
    `${where} is longer than ${longestInput} characters (16 MiB), the most that the command line reads. ` +
      'Store it elsewhere and pass a reference.',
    { details: { most: longestInput } },
  )
}

function invalid(text: string, where: string): HoldfastError {
  if (text.trim() === '') {
    return new HoldfastError('INVALID_INPUT', `${where} is empty, and JSON is not. For no input at all leave it out.`)
  }
  const at = faultAt(text)
  const { line, column } = placeOf(text, at)
  const rest = text.slice(at, at + 20)
  const found = rest === '' ? 'it ends too early' : `it goes wrong at ${visible(JSON.stringify(rest))}`
  return new HoldfastError(
    'INVALID_INPUT',
    `${where} is not JSON: line ${line}, column ${column}: ${found}. ` +
      `Text needs double quotes, and a shell needs single ones around it all: ${example(text)}.`,
    { details: { line, column, position: at } },
  )
}

/** A single word is most often meant as a text. */
function example(text: string): string {
  return /^[a-z][\w-]{0,40}$/i.test(text) ? `'"${text}"'` : `'{"id":"42"}'`
}

/** Counted without splitting the text: it may have millions of lines. */
function placeOf(text: string, at: number): { readonly line: number; readonly column: number } {
  let [line, begin] = [1, 0]
  for (let next = text.indexOf('\n'); next !== -1 && next < at; next = text.indexOf('\n', begin)) {
    line += 1
    begin = next + 1
  }
  return { line, column: at - begin + 1 }
}

const space = /[ \t\n\r]*/y
const word = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const escape = /["\\/bfnrt]|u[\dA-Fa-f]{4}/y

/** The index after the string that begins there; `start` if it never ends, or contains an invalid character. */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code < 0x20) return start
    if (code !== 0x5c) continue
    escape.lastIndex = at + 1
    const escaped = escape.exec(json)?.[0]
    if (escaped === undefined) return start
    at += escaped.length
  }
  return start
}

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end'

/** The index at which a text stops being JSON: its length if it only ends too early. */
function faultAt(json: string): number {
  const open: ('[' | '{')[] = []
  let expected: Expected = 'value'
  let at = 0
  const taken = (pattern: RegExp): string => {
    pattern.lastIndex = at
    return pattern.exec(json)?.[0] ?? ''
  }
  for (;;) {
    at += taken(space).length
    if (at >= json.length) return json.length
    const character = json.charAt(at)
    const inside = open.at(-1)
    if (expected === 'comma or end' && inside === undefined) return at
    if (expected.endsWith('end') && character === (inside === '[' ? ']' : '}')) {
      open.pop()
      expected = 'comma or end'
      at += 1
    } else if (expected === 'colon' || expected === 'comma or end') {
      if (character !== (expected === 'colon' ? ':' : ',')) return at
      expected = expected === 'colon' || inside === '[' ? 'value' : 'key'
      at += 1
    } else if (expected.startsWith('value') && (character === '[' || character === '{')) {
      open.push(character)
      expected = character === '[' ? 'value or end' : 'key or end'
      at += 1
    } else {
      const isKey = expected.startsWith('key')
      const end = character === '"' ? endOfString(json, at) : isKey ? at : at + taken(word).length
      if (end === at) return at
      expected = isKey ? 'colon' : 'comma or end'
      at = end
    }
  }
}
