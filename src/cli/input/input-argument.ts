// A value that the user passes to a command: as an argument, from standard input, or from a file of JSON.

import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { isHoldfastError } from '../../core/errors/error.ts'
import { visible } from '../../core/text/printable.ts'
import type { Call } from '../command-call.ts'
import { readAll, type Io } from '../io.ts'
import { longestInput, parseInput, tooLong } from './json-input.ts'
import { messageOf } from '../output/plain-json.ts'
import { quoted, usage } from '../usage.ts'

/** The value; undefined if none was given. `what` names it, as in "The input". */
export async function inputOf(
  { io }: Call,
  what: 'input' | 'payload',
  input: string | undefined,
  file: string | undefined,
): Promise<unknown> {
  if (input !== undefined && file !== undefined) throw usage(`The ${what} is an argument or a --file, not both.`)
  if (file !== undefined) return readInput(resolve(io.cwd, file), file)
  if (input === '-') return parseAll(io.stdin, 'The text from standard input')
  return input === undefined ? undefined : parseInput(input, `The ${what}`)
}

async function parseAll(stream: Io['stdin'], where: string): Promise<unknown> {
  const text = await readAll(stream, longestInput).catch((error: unknown) => {
    throw error instanceof TypeError ? usage(`${where} is not UTF-8 text. Convert it, for example with iconv.`) : error
  })
  if (text === null) throw tooLong(where)
  return parseInput(text, where)
}

async function readInput(path: string, name: string): Promise<unknown> {
  try {
    // As a stream: a file without end, such as a device, is not read to its end.
    return await parseAll(createReadStream(path), `The file ${quoted(name)}`)
  } catch (error) {
    if (isHoldfastError(error)) throw error
    throw usage(`The file ${quoted(name)} cannot be read: ${visible(messageOf(error))}.`)
  }
}
