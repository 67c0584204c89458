// Whose the schema and its tables are. Whoever owns a table can attach code to it (a check, a default, a policy, a trigger),
// and that runs with the rights of whoever writes there. A migration often has more rights than anybody else, so it goes only
// into what belongs to those it trusts: to itself, to a role whose rights it has, or to a superuser.

import { HoldfastError } from '../../core/error.ts'
import { shown } from '../../core/suggest.ts'
import type { ClientLike } from './database.ts'
import { tableNames } from './schema.ts'
import { quoteName, quoteText } from './schema-name.ts'

/** The one thing of ours besides tables that has a name in the schema before its version is there. */
const ourNames = [...tableNames, 'feed_number']

export interface Ownership {
  /** What has the name of a table of ours, and is none: to read a view is to run what its owner wrote. */
  readonly untrue: readonly string[]
  /** What belongs to somebody else. */
  readonly foreign: readonly { readonly what: string; readonly owner: string }[]
}

/** Looks at the catalog alone, which runs nothing. `as` is who migrates, if that is not the user of the connection. */
export async function ownershipOf(client: ClientLike, schema: string, as?: string): Promise<Ownership> {
  const { rows } = await client.query({ text: ownershipSql(schema), values: [as ?? null] })
  const foreign = rows.filter((row) => row['trusted'] !== true)
  return {
    untrue: rows.filter((row) => row['untrue'] === true).map((row) => String(row['name'])),
    foreign: foreign.map((row) => ({
      what: `${String(row['what'])} "${String(row['name'])}"`,
      owner: String(row['owner']),
    })),
  }
}

/** Throws if something belongs to somebody whose code would run with the rights of who migrates. */
export function assertOwned({ foreign }: Ownership, schema: string, as?: string): void {
  const [first] = foreign
  if (first === undefined) return
  const { what, owner } = first
  const rest = foreign.length === 1 ? '' : ` (and ${foreign.length - 1} more)`
  throw new HoldfastError(
    'INVALID_OPTION',
    `In the schema ${shown(schema)}, the ${what}${rest} belongs to ${shown(owner)}, not to ${as === undefined ? 'you' : shown(as)}: ` +
      'what its owner attached to it would run with your rights. Connect as its owner, name it with ' +
      `\`holdfast migrate --owner ${owner}\` (then it is done with its rights alone), or choose another schema.`,
    { details: { schema, owner, found: foreign.map((one) => `${one.what} of ${one.owner}`) } },
  )
}

/** Has a transaction go on with the rights of that role alone. */
export function setLocalRole(owner: string): string {
  return `set local role ${quoteName(owner)}`
}

/** The name of a role. Postgres takes "none" for no role at all, and goes on with all rights. */
export function checkOwner(owner: string): string {
  if (owner !== '' && owner.toLowerCase() !== 'none' && !owner.includes('\0')) return owner
  throw new HoldfastError('INVALID_OPTION', `The owner of a schema is the name of a role. Got ${shown(owner)}.`)
}

/**
 * The owner of a database owns what belongs to pg_database_owner. A superuser has the rights of every role, and so trusts
 * nobody by that: only itself, and other superusers.
 */
function ownershipSql(schema: string): string {
  const name = quoteText(schema)
  const relations = ourNames.map(quoteText).join(', ')
  return `
    with me as (
      select role.oid, role.rolsuper as super from pg_catalog.pg_roles as role
      where role.rolname = coalesce($1::text::name, current_user)),
    place as (select oid, nspname, nspowner from pg_catalog.pg_namespace where nspname = ${name}),
    relation as (
      select c.oid, c.relname, c.relowner, c.relkind from pg_catalog.pg_class as c join place on place.oid = c.relnamespace
      where c.relname in (${relations})),
    found as (
      select 'schema'::text as what, nspname::text as name, nspowner as owner, false as untrue from place
      union all
      select 'table'::text, relname::text, relowner, relkind not in ('r', 'p') and relname <> 'feed_number' from relation
      union all
      select 'trigger'::text, t.tgname::text, p.proowner, false from relation
        join pg_catalog.pg_trigger as t on t.tgrelid = relation.oid and not t.tgisinternal
        join pg_catalog.pg_proc as p on p.oid = t.tgfoid),
    owned as (
      select found.what, found.name, found.untrue, coalesce((
        select d.datdba from pg_catalog.pg_database as d
        where d.datname = pg_catalog.current_database() and pg_catalog.pg_get_userbyid(found.owner) = 'pg_database_owner'
      ), found.owner) as owner from found)
    select owned.what, owned.name, owned.untrue, pg_catalog.pg_get_userbyid(owned.owner)::text as owner,
      coalesce(owned.owner = me.oid or role.rolsuper
        or (not me.super and pg_catalog.pg_has_role(me.oid, owned.owner, 'USAGE'::text)), false) as trusted
    from owned cross join me left join pg_catalog.pg_roles as role on role.oid = owned.owner
    order by owned.what, owned.name`
}
