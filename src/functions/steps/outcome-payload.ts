// The outcome of a step goes through the codec and back before the body sees it, so that the first execution and a replay see
// the same value.

import { HoldfastError } from '../../core/errors/error.ts'
import type { Place } from '../../core/payload/place.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
import { quotedText } from '../../core/text/printable.ts'

/** The value as a replay will read it. A codec that cannot read it is as bad as one that could not write it. */
export function readBack(payloads: Payloads, data: string, where: Place): unknown {
  try {
    return payloads.decode(data, where)
  } catch (cause) {
    throw new HoldfastError('NOT_STORABLE', 'The codec cannot read its own output.', { cause })
  }
}

/** The error as a replay will read it, or as it was thrown where the codec cannot read it. */
export function readFailureBack(payloads: Payloads, data: string, where: Place, error: unknown): unknown {
  try {
    return payloads.decode(data, where)
  } catch {
    return error
  }
}

/** A refused result says which step returned it. */
export function nameStep(error: unknown, step: string): unknown {
  return refusalOf(error, `The result of step ${quotedText(step)}`, { step })
}
