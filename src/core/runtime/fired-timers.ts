// What a log says of timers whose inputs could not be decided: no caller waits for them, so without a line nobody would know.

import type { Decided } from '../definition/decider-model.ts'
import type { FailedAttempt } from '../definition/definition.ts'
import type { Logger } from './ports.ts'
import { runLine, shortMessage } from '../rows/engine-notes.ts'
import { quotedText } from '../text/printable.ts'

type FailedTimer = FailedAttempt & { readonly step: string }

/** The attempts of a committed batch to fire a timer that are followed by another one. */
export function failedTimers(run: FailedAttempt['run'], { fired, append }: Decided): readonly FailedTimer[] {
  return fired.flatMap(({ name, answer }) => {
    const entry = append.find((one) => one.kind === 'attempt-failed' && one.name === name)
    if (answer.outcome !== 'failed' || entry?.kind !== 'attempt-failed') return []
    const { attempt, delayMs } = entry.meta
    return [{ run, step: name, kind: 'timer', attempt, delayMs, error: answer.error }]
  })
}

/** One line at level `error` for each timer that a committed batch has given up. */
export function logDeadTimers(
  logger: Logger,
  run: FailedAttempt['run'] & { readonly instanceId: string },
  { fired, append }: Decided,
): void {
  for (const { name, answer } of fired) {
    const entry = append.find((one) => one.kind === 'timer-failed' && one.name === name)
    if (answer.outcome !== 'failed' || entry?.kind !== 'timer-failed') continue
    const { error } = answer
    const { id, type, instanceId } = run
    const { attempt } = entry.meta
    const text =
      `gave up timer ${quotedText(name)} of instance ${quotedText(instanceId)} after attempt ${attempt}: its input could not be ` +
      `decided: ${shortMessage(error)}`
    logger.error(runLine(run, text), { run: id, type, id: instanceId, timer: name, attempt, error })
  }
}
