// The difference that a replay found, as an error that says what to do.

import { jsonCodec } from '../../core/payload/codec.ts'
import { HoldfastError, isHoldfastError, messageOf, type ErrorCode } from '../../core/errors/error.ts'
import { nowhere } from '../../core/payload/place.ts'
import type { Run } from '../../core/model/run.ts'
import type { BodyOutcome, ReplayResult, UnfinishedBody } from './replay-run.ts'
import { quotedText } from '../../core/text/printable.ts'

/** These are no errors of the body, and say themselves what to do. */
const shownAsTheyAre: readonly ErrorCode[] = ['DRIFT', 'PAYLOAD_CORRUPT', 'STORE_UNAVAILABLE', 'EVENT_UNREADABLE']

/** Null if code and journal agree. */
export function disagreementOf(
  { id, type, version }: Pick<Run, 'id' | 'type' | 'version'>,
  replayed: ReplayResult,
): HoldfastError | null {
  const details = { runId: id, type, version }
  switch (replayed.outcome) {
    case 'same':
      return null
    case 'drift': {
      const { drift } = replayed
      return new HoldfastError('DRIFT', drift.message, { details: { ...details, ...drift } })
    }
    case 'ends-otherwise': {
      const { recorded, now } = replayed
      const message =
        `The code ends differently than run ${id} of ${quotedText(type)} did. The journal says: ${endText(recorded)}. Now: ${endText(now)}. ` +
        'Take every value that the end depends on from the input, a step, ctx.now, ctx.random or ctx.uuid.'
      return new HoldfastError('DRIFT', message, { details: { ...details, recorded, now } })
    }
    case 'folds-otherwise': {
      const { seq, recorded, now } = replayed
      const message =
        `The events of run ${id} of ${quotedText(type)} up to entry ${seq} give another state than they did. It was: ` +
        `${briefly(recorded)}. Now it is: ${briefly(now)}. Where that is meant, raise stateVersion of the decider; where it is ` +
        'not, upcast the events.'
      return new HoldfastError('DRIFT', message, { details: { ...details, seq, recorded, now } })
    }
    case 'throws': {
      const { error } = replayed
      if (isHoldfastError(error) && shownAsTheyAre.includes(error.code)) return error
      const message =
        `The body of ${quotedText(type)} throws where it did not when run ${id} was recorded: ${messageOf(error)}. A run at this point ` +
        'would fail, or be tried again, with this code.'
      return new HoldfastError('DRIFT', message, { cause: error, details })
    }
  }
}

function endText(end: BodyOutcome | UnfinishedBody): string {
  switch (end.status) {
    case 'succeeded':
      return `it returned ${briefly(end.output)}`
    case 'failed':
      return `it failed: ${messageOf(end.error)}`
    case 'waiting':
      return 'it asks for more'
    case 'continued':
      return 'it begins anew'
  }
}

const codec = jsonCodec()
const longest = 200

function briefly(value: unknown): string {
  try {
    const text = codec.encode(value, nowhere)
    return text.length > longest ? `${text.slice(0, longest)}…` : text
  } catch {
    return 'something that the default codec cannot write'
  }
}
