// A value that a person gives to a command: as an argument, from standard input, or from a file of JSON.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Call } from './call.ts'
import { visible } from './escape.ts'
import { readAll } from './io.ts'
import { parseInput } from './json-input.ts'
import { messageOf } from './plain-json.ts'
import { quoted, usage } from './usage.ts'

/** The value; undefined if none was given. `what` names it, as in "The input". */
export async function inputOf(
  { io }: Call,
  what: 'input' | 'payload',
  input: string | undefined,
  file: string | undefined,
): Promise<unknown> {
  if (input !== undefined && file !== undefined) throw usage(`The ${what} is an argument or a --file, not both.`)
  if (file !== undefined) return parseInput(readInput(resolve(io.cwd, file), file), `The file ${quoted(file)}`)
  if (input === '-') return parseInput(await readAll(io.stdin), 'What came from standard input')
  return input === undefined ? undefined : parseInput(input, `The ${what}`)
}

function readInput(path: string, name: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw usage(`The file ${quoted(name)} cannot be read: ${visible(messageOf(error))}.`)
  }
}
