// Reads JSON that a person typed, and says where it is wrong: not every runtime does.

import { HoldfastError } from '../core/error.ts'
import { visible } from './escape.ts'

/** The value of a JSON text. `where` names its origin in the error. */
export function parseInput(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw invalid(text, where)
  }
}

function invalid(text: string, where: string): HoldfastError {
  if (text.trim() === '') {
    return new HoldfastError('INVALID_INPUT', `${where} is empty, and JSON is not. For no input at all leave it out.`)
  }
  const at = faultAt(text)
  const before = text.slice(0, at).split('\n')
  const [line, column] = [before.length, (before.at(-1)?.length ?? 0) + 1]
  const rest = text.slice(at, at + 20)
  const found = rest === '' ? 'it ends too early' : `it goes wrong at ${visible(JSON.stringify(rest))}`
  return new HoldfastError(
    'INVALID_INPUT',
    `${where} is not JSON: line ${line}, column ${column}: ${found}. ` +
      `Text needs double quotes, and a shell needs single ones around it all: '{"id":"42"}'.`,
    { details: { line, column, position: at } },
  )
}

const space = /[ \t\n\r]*/y
const scalar =
  /"(?:[^"\\\p{Cc}]|[\u007F-\u009F]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null/iuy
const text = /^"/

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end'

/** The index at which a text stops to be JSON: its length if it only ends too early. */
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
      const found = taken(scalar)
      const isKey = expected.startsWith('key')
      if (found === '' || (isKey && !text.test(found))) return at
      // The words are matched without regard to case, because the digits of an escape are.
      if (/^[TFN]/.test(found) || (/^[tfn]/.test(found) && found !== found.toLowerCase())) return at
      expected = isKey ? 'colon' : 'comma or end'
      at += found.length
    }
  }
}
