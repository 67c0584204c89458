// What is said of an event that a projection could not handle.

import { messageOf } from '../core/errors/error.ts'
import type { Logger } from '../core/runtime/ports.ts'
import type { FailedEvent, ProjectionPart } from '../store.ts'
import type { PendingEvent } from './projected-event.ts'

/** Postgres, and the words of SQLite. */
const undefinedTable = '42P01'
const noTable = /no such table/i

/** The event as the store keeps it, with the error. */
export function failedEvent(
  name: string,
  part: ProjectionPart,
  { id, type, change }: PendingEvent,
  { attempts, error }: { readonly attempts: number; readonly error: unknown },
): FailedEvent {
  const { position, type: of, key: instance } = change
  return { position, id, type, of, instance, attempts, error: whatFailed(name, part, error) }
}

export function logFailing(logger: Logger, name: string, { id, type, change }: PendingEvent, error: unknown): void {
  const { position } = change
  const said = `Projection "${name}" fails at event ${id} ("${type}") and tries it again: ${messageOf(error)}`
  logger.warn(said, { projection: name, event: id, position, error })
}

export function logParked(logger: Logger, name: string, failure: FailedEvent, cause: unknown): void {
  const { id, type, position, attempts, error } = failure
  const said =
    `Projection "${name}" is parked at event ${id} ("${type}") after ${attempts} attempts: ${error} ` +
    'Repair the cause and resume it, or skip the event.'
  logger.error(said, { projection: name, event: id, position, error: cause })
}

/** The error in words. Of a table that is gone it says what to do: that is no fault of the event. */
function whatFailed(name: string, part: ProjectionPart, error: unknown): string {
  const said = messageOf(error)
  if (!isMissingTable(error)) return said
  const where = part === 'live' ? 'read model' : 'place of the rebuild'
  return (
    `A table of the ${where} of "${name}" is missing: ${said}. Create it again and build the projection anew, or resume it if ` +
    'nothing of it was lost.'
  )
}

function isMissingTable(error: unknown): boolean {
  let one = error
  for (let depth = 0; depth < 5 && typeof one === 'object' && one !== null; depth += 1) {
    const { code, cause, message } = one as { code?: unknown; cause?: unknown; message?: unknown }
    if (code === undefinedTable || (typeof message === 'string' && noTable.test(message))) return true
    one = cause
  }
  return false
}

const firstRetryMs = 200
const longestRetryMs = 5_000

/** How long to wait before a failed event is tried again: 200 ms, then twice as long each time, up to 5 s. */
export function retryDelay(attempts: number): number {
  return Math.min(firstRetryMs * 2 ** (attempts - 1), longestRetryMs)
}
