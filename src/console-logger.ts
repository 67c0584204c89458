// The default logger: one line on the console for each message, with its details. Messages and details quote data of runs and
// of databases, so a line break or a control character in them is shown and not obeyed: one message is one line, and only
// frames of an error's stack follow it, indented.

import { inspect } from 'node:util'
import { isHoldfastError } from './core/errors/error.ts'
import type { Logger } from './core/runtime/ports.ts'
import { visible } from './core/text/printable.ts'

type Details = Readonly<Record<string, unknown>>

/** A console, or its replacement in a test. */
type Console = Pick<typeof console, 'info' | 'warn' | 'error'>

const mostFrames = 10
const shape = { depth: 5, breakLength: Infinity, compact: true, maxStringLength: 2_000, maxArrayLength: 50 } as const

export function createConsoleLogger(to: Console = console): Logger {
  return {
    debug: () => undefined,
    info: (message, details) => to.info(textOf(message, details)),
    warn: (message, details) => to.warn(textOf(message, details)),
    error: (message, details) => to.error(textOf(message, details)),
  }
}

function textOf(message: string, details: Details = {}): string {
  const plain: Record<string, unknown> = {}
  const frames: string[] = []
  for (const [name, value] of Object.entries(details)) {
    plain[name] = value instanceof Error ? named(value, message) : value
    if (value instanceof Error) frames.push(...framesOf(value))
  }
  const text = Object.keys(plain).length === 0 ? '' : ` ${inspect(plain, shape)}`
  const [first = '', ...more] = hasLines(message, details) ? message.split('\n') : [message]
  return [visible(first + text), ...more.map((line) => `    ${visible(line)}`), ...frames].join('\n')
}

/** An error whose text the message has already is not shown twice. */
function named(error: Error, message: string): string {
  return error.message !== '' && message.includes(error.message) ? error.name : `${error.name}: ${error.message}`
}

/** The diff of a drift has lines of ours. The line breaks of any other message may be those of data. */
function hasLines(message: string, { error }: Details): boolean {
  return isHoldfastError(error, 'DRIFT') && message.endsWith(error.message)
}

/** Where an error was thrown. Its stack begins with its message, which is shown already. */
function framesOf({ stack = '' }: Error): readonly string[] {
  const lines = typeof stack === 'string' ? stack.split('\n') : []
  return lines
    .filter((line) => /^\s+at /.test(line))
    .slice(0, mostFrames)
    .map((line) => `    ${visible(line.trim())}`)
}
