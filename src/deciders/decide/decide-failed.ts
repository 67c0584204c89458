// Why an input could not be decided.

import { HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import { mostBytes, mostEntries } from '../../core/model/transition.ts'
import { canonicalText } from '../../core/payload/same-value.ts'
import { quotedText } from '../../core/text/printable.ts'
import { shown } from '../../core/text/suggest.ts'
import type { FoldOptions } from '../fold/fold.ts'

/** `input` is undefined if it cannot be read. */
export function decideFailed({ rules, id }: FoldOptions, input: unknown, cause: unknown): HoldfastError {
  if (isHoldfastError(cause, 'DECIDE_FAILED')) return cause
  const type: unknown =
    typeof input === 'object' && input !== null ? (input as { readonly type?: unknown }).type : undefined
  const named = typeof type === 'string' ? ` ${quotedText(type)}` : ''
  return new HoldfastError(
    'DECIDE_FAILED',
    `Decider "${rules.type}" could not decide an input${named} for instance ${quotedText(id)}: ${messageOf(cause)}`,
    { cause, details: { type: rules.type, id, input: shownInput(input) } },
  )
}

/** One input alone needs more than a transition takes. */
export function tooMuch(): Error {
  return new Error(
    `what follows from it does not fit into one transition: ${mostEntries} entries and ${mostBytes / 1024 / 1024} MiB at most`,
  )
}

const longestInput = 2_000

/** The beginning of an input, for a person. The whole of it may be large, and is recorded elsewhere. */
function shownInput(input: unknown): string | null {
  return input === undefined ? null : (canonicalText(input)?.slice(0, longestInput) ?? shown(input))
}
