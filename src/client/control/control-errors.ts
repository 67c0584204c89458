// Errors for the refusals that a store answers to control commands.

import { HoldfastError } from '../../core/errors/error.ts'
import { type Run } from '../../core/model/run.ts'
import type { ControlResult, ControlRefusal } from '../../core/rules/control.ts'
import { shown } from '../../core/text/suggest.ts'
import { runNotFound } from '../run-reference.ts'

export function found(id: string, answer: ControlResult): Exclude<ControlResult, { outcome: 'not-found' }> {
  if (answer.outcome === 'not-found') throw runNotFound(id)
  return answer
}

export function granted(
  id: string,
  given: ControlResult,
  done: string,
): Extract<ControlResult, { outcome: 'done' | 'requested' }> {
  const answer = found(id, given)
  if (answer.outcome === 'refused') throw wrongStatus(answer.run, answer.reason, done)
  if (answer.outcome === 'key-taken') {
    throw new HoldfastError(
      'RUN_EXISTS',
      `Run ${id} cannot be ${done}: run ${answer.by} is live and has its key ${shown(answer.run.key)}. ` +
        'Wait for its end, or cancel it.',
      { details: { runId: answer.by, key: answer.run.key } },
    )
  }
  return answer
}

const hints: Readonly<Record<ControlRefusal, string>> = {
  ended: 'Nothing moves a run that is over.',
  cancelling: 'No way leads back from a cancellation.',
  'not-paused': 'Only a paused run can be resumed.',
  'not-failed': 'Only a failed run can be retried.',
  undone: 'Its steps were undone: start a new run.',
  changed: 'Its journal has moved on since it was read: look again.',
  deleted: 'It was removed: start a new run.',
}

export function wrongStatus(run: Run, reason: ControlRefusal, done: string): HoldfastError {
  return new HoldfastError('WRONG_STATUS', `Run ${run.id} is ${run.status} and cannot be ${done}. ${hints[reason]}`, {
    details: { runId: run.id, status: run.status, reason },
  })
}
