// Errors about the arguments. Quoted values are shortened, so that a message fits on a screen.

import { HoldfastError } from '../core/errors/error.ts'
import { visible } from '../core/text/printable.ts'

const longestQuote = 200

export function usage(
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message, { details, ...(cause === undefined ? {} : { cause }) })
}

/** A value from the arguments, as a message quotes it. */
export function quoted(text: string): string {
  return `"${visible(text.length > longestQuote ? `${text.slice(0, longestQuote)}…` : text)}"`
}
