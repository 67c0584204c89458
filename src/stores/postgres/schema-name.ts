// The name of the schema that the tables stand in. It is the one text of a user that becomes part of a statement, so any
// name that Postgres can hold is taken as it is, quoted, and everything else is refused before anything is sent.

import { utf8Length } from '../../core/bytes.ts'
import { HoldfastError } from '../../core/error.ts'
import { shown } from '../../core/suggest.ts'

/** Postgres cuts a longer name short without a word, and two schemas would be one. */
const longestBytes = 63

/** The schema as it may stand in a statement. */
export function quoteSchema(name: unknown): string {
  return quoteName(checkSchema(name))
}

/** A name as it may stand in a statement. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as it may stand in a statement. */
export function quoteText(text: string): string {
  // A backslash means nothing in a plain text: servers with standard_conforming_strings off are older than we support.
  return `'${text.replaceAll("'", "''")}'`
}

/** The name, if a schema may have it. */
export function checkSchema(name: unknown): string {
  if (typeof name !== 'string' || name === '') throw refused(name, 'is a text that is not empty')
  if (name.includes('\0')) throw refused(name, 'has no NUL in it')
  if (/[\uD800-\uDFFF]/u.test(name)) throw refused(name, 'is well-formed Unicode')
  if (utf8Length(name) > longestBytes) throw refused(name, `has at most ${longestBytes} bytes`)
  if (name.startsWith('pg_') || name === 'information_schema') throw refused(name, 'is not one of Postgres itself')
  return name
}

function refused(name: unknown, rule: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `The name of a schema ${rule}. Got ${shown(name)}.`, { details: { name } })
}
