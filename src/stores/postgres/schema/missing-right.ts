// Finds the right that a refused statement lacked. Postgres names the table, in the language of the server, and neither the
// right nor the schema; the rights that a statement needs follow from its text, and those of them that its user lacks are
// queried afterwards.

import { HoldfastError } from '../../../core/errors/error.ts'
import { tableNames } from '../table-names.ts'
import type { Row } from '../execution.ts'
import { isRight, sqlStateOf } from '../connection/sql-state.ts'

/** A right on an object in our schema. */
interface Need {
  readonly kind: 'table' | 'sequence'
  readonly name: string
  readonly right: 'select' | 'insert' | 'update' | 'delete' | 'usage'
}

/** The rights that a statement of ours needs. `schema` is its name, quoted. */
export function needsOf(schema: string, text: string): readonly Need[] {
  const found = new Map<string, Need>()
  const add = (right: Need['right'], name: string | undefined, kind: Need['kind'] = 'table'): void => {
    if (name !== undefined) found.set(`${right} ${name}`, { kind, name, right })
  }
  const table = `${schema}\\.([a-z_]+)`
  const named = (before: string): readonly RegExpMatchArray[] =>
    Array.from(text.matchAll(new RegExp(before + table, 'g')))
  /** The last that is named before a place. */
  const lastBefore = (before: string, at: number): string | undefined =>
    named(before).findLast(({ index = 0 }) => index < at)?.[1]
  for (const [, name] of named('')) add('select', name)
  for (const [, name] of named('insert into ')) add('insert', name)
  for (const [, name] of named('update ')) add('update', name)
  for (const [, name] of named('delete from ')) add('delete', name)
  for (const { index } of text.matchAll(/do update set/g)) add('update', lastBefore('insert into ', index))
  // A statement that locks a row needs the right to change it.
  for (const { index } of text.matchAll(/for no key update/g)) add('update', lastBefore('', index))
  if (text.includes('nextval')) add('usage', 'feed_number', 'sequence')
  return [...found.values()].filter(({ kind, name }) => kind === 'sequence' || tableNames.includes(name))
}

/** A query for those of them that the user lacks. It works also for a user that may not even look into the schema. */
function lackQuery(schema: string, needs: readonly Need[]): string {
  const name = schema.slice(1, -1)
  const rows = needs.map(({ kind, name: of, right }) => `('${kind}'::text, '${of}'::text, '${right}'::text)`)
  return `
    select current_user::text as role, pg_catalog.has_schema_privilege(place.oid, 'usage'::text) as enters,
      need.name, need."right" from (values ${rows.join(', ')}) as need (kind, name, "right")
    join pg_catalog.pg_namespace as place on place.nspname = '${name}'
    join pg_catalog.pg_class as relation on relation.relnamespace = place.oid and relation.relname = need.name::name
    where not pg_catalog.has_schema_privilege(place.oid, 'usage'::text) or not case need.kind
      when 'sequence' then pg_catalog.has_sequence_privilege(relation.oid, need."right")
      else pg_catalog.has_table_privilege(relation.oid, need."right") end`
}

/** The same error with the missing right, and how to grant it; unchanged if nothing is missing any more. */
function naming(error: HoldfastError, schema: string, rows: readonly Row[]): HoldfastError {
  const [first] = rows
  if (first === undefined) return error
  const place = schema.slice(1, -1)
  const role = `"${String(first['role']).replaceAll('"', '""')}"`
  const missing =
    first['enters'] === true
      ? rows.map((row) => ({ right: String(row['right']), on: `${place}.${String(row['name'])}` }))
      : [{ right: 'usage', on: `schema ${place}` }]
  const lacks = missing.map(({ right, on }) => `${right.toUpperCase()} on ${on}`).join(', ')
  const grants = missing.map(({ right, on }) => {
    const kind = on.endsWith('.feed_number') ? 'sequence ' : ''
    return `grant ${right} on ${kind}${on} to ${role}`
  })
  const said = error.cause instanceof Error ? ` Postgres says: ${error.cause.message}` : ''
  return new HoldfastError(
    'STORE_REFUSED',
    `The user ${role} of the database lacks ${lacks}: ${grants.join('; ')}.${said}`,
    { cause: error.cause, details: { ...error.details, missing: missing.map(({ right, on }) => `${right} on ${on}`) } },
  )
}

/** Names the rights that refused statements lacked. */
export class Rights {
  private readonly schema: string
  private readonly ask: (query: string) => Promise<readonly Row[]>
  /** The texts of statements, by their errors. */
  private readonly texts = new WeakMap<object, string>()

  constructor(schema: string, ask: (query: string) => Promise<readonly Row[]>) {
    this.schema = schema
    this.ask = ask
  }

  /** A statement failed with this. */
  note(error: unknown, text: string): void {
    if (isRight(sqlStateOf(error))) this.texts.set(error as object, text)
  }

  /** The error with the missing right, if it is about one; unchanged if that cannot be found. */
  async named(error: HoldfastError): Promise<HoldfastError> {
    const { cause, details } = error
    const text = typeof cause === 'object' && cause !== null ? this.texts.get(cause) : undefined
    // A row that a policy refuses lacks no right.
    if (text === undefined || details['row'] === true) return error
    const needs = needsOf(this.schema, text)
    if (needs.length === 0) return error
    const rows = await this.ask(lackQuery(this.schema, needs)).catch(() => [])
    return naming(error, this.schema, rows)
  }
}
