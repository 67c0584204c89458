// What is said of an event that a projection could not handle.

import { messageOf } from '../core/errors/error.ts'
import type { ProjectionPart } from '../store.ts'

/** Postgres, and the words of SQLite. */
const undefinedTable = '42P01'
const noTable = /no such table/i

/** The error in words. Of a table that is gone it says what to do: that is no fault of the event. */
export function whatFailed(name: string, part: ProjectionPart, error: unknown): string {
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
