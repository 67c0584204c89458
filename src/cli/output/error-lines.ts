// An error as lines of text: its causes, and the stacks of all of them. Messages and stacks quote data, so each line passes
// `visible`, and a line break in a message begins no line.

import { isError } from '../../core/payload/error-data.ts'
import { visible } from '../../core/text/printable.ts'
import { messageOf } from './plain-json.ts'

/** The most causes that are shown: they may form a cycle. */
const mostCauses = 5

/** `caused by Error: the bank is closed`, a line for each cause, the nearest first. */
export function causeLines(error: unknown): readonly string[] {
  return causesOf(error).map((cause) => `caused by ${headline(cause)}`)
}

/** The frames of an error's stack, then each of its causes with the frames of its own. */
export function stackLines(error: unknown): readonly string[] {
  return [
    ...framesOf(error),
    ...causesOf(error).flatMap((cause) => [`caused by ${headline(cause)}`, ...framesOf(cause)]),
  ]
}

/** An error on one line: its name and its message. */
function headline(error: unknown): string {
  if (typeof error !== 'object' || error === null || !isError(error)) return visible(messageOf(error))
  return visible(error.message === '' ? error.name : `${error.name}: ${error.message}`)
}

function causesOf(error: unknown): readonly unknown[] {
  const causes: unknown[] = []
  let next = causeOf(error)
  while (next !== undefined && causes.length < mostCauses) {
    causes.push(next)
    next = causeOf(next)
  }
  return causes
}

function causeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && isError(error) ? error.cause : undefined
}

/** A stack begins with the message, which may have lines that look like frames. */
function framesOf(error: unknown): readonly string[] {
  if (typeof error !== 'object' || error === null || !isError(error)) return []
  const { stack, message } = error
  if (typeof stack !== 'string') return []
  const at = stack.indexOf(message)
  const frames = at === -1 ? stack : stack.slice(at + message.length)
  return frames
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => `    ${visible(line.trim())}`)
}
