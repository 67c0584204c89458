// The name of the schema with the tables. It is the one text of a user that becomes part of a statement, so only names are
// accepted that mean the same to every reader: to Postgres under any settings, to a shell, in an address, and to a person who
// types them without quotes. Any other name is refused before anything is sent.

import { bug, HoldfastError } from '../../../core/errors/error.ts'
import { shown } from '../../../core/text/suggest.ts'

/** Postgres cuts a longer name short without a word, and two schemas would be one. */
const plainName = /^[a-z_][a-z0-9_]{0,62}$/

/** The schema as it may stand in a statement. */
export function quoteSchema(name: unknown): string {
  return quoteName(checkSchema(name))
}

/** A name as it may stand in a statement. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * A text of ours as it may stand in a statement. The meaning of a backslash depends on a setting of the server: it has none.
 */
export function quoteText(text: string): string {
  if (text.includes('\\')) throw bug('A text with a backslash was to stand in a statement', { text })
  return `'${text.replaceAll("'", "''")}'`
}

/** The name, if a schema may have it. */
export function checkSchema(name: unknown): string {
  if (typeof name !== 'string' || !plainName.test(name)) {
    throw refused(name, 'is 1 to 63 of a–z, 0–9 and _, and begins with no digit')
  }
  if (name.startsWith('pg_') || name === 'information_schema') throw refused(name, 'is not one of Postgres itself')
  return name
}

function refused(name: unknown, rule: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `The name of a schema ${rule}. Got ${shown(name)}.`, { details: { name } })
}
