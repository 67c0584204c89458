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
  /** Tables whose policies of row-level security apply to this user. */
  readonly filtered: readonly string[]
}

/**
 * Looks at the catalog alone, which runs nothing. `as` is who migrates, if that is not the user of the connection; `names` what we
 * make in the schema.
 */
export async function ownershipOf(
  client: ClientLike,
  schema: string,
  as?: string,
  names: readonly string[] = ourNames,
): Promise<Ownership> {
  const { rows } = await client.query({ text: ownershipSql(schema, names), values: [as ?? null] })
  const foreign = rows.filter((row) => row['trusted'] !== true)
  return {
    untrue: rows.filter((row) => row['untrue'] === true).map((row) => String(row['name'])),
    foreign: foreign.map((row) => ({
      what: `${String(row['what'])} "${String(row['name'])}"`,
      owner: String(row['owner']),
    })),
    filtered: rows.filter((row) => row['filtered'] === true).map((row) => String(row['name'])),
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

/** The role that a schema belongs to, and whether the user of the connection may act as that; null if there is none. */
export async function ownerOf(
  client: ClientLike,
  schema: string,
): Promise<{ readonly name: string; readonly isOpen: boolean } | null> {
  const { rows } = await client.query({
    text: `select r.rolname::text as name, r.rolname <> current_user
        and pg_catalog.pg_has_role(current_user, r.oid, 'member'::text) as open
      from pg_catalog.pg_namespace as n join pg_catalog.pg_roles as r on r.oid = n.nspowner
      where n.nspname = ${quoteText(schema)}`,
  })
  const [row] = rows
  return row === undefined ? null : { name: String(row['name']), isOpen: row['open'] === true }
}

/** Reads a schema with the rights of its owner alone: what is attached to its tables runs with those. */
export async function asOwnerOf<Answer>(
  client: ClientLike,
  schema: string,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const owner = await ownerOf(client, schema)
  await client.query({ text: 'begin' })
  try {
    if (owner?.isOpen === true) await client.query({ text: setLocalRole(owner.name) })
    return await work()
  } finally {
    await client.query({ text: 'rollback' })
  }
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
 * nobody by that: only itself, and other superusers. Policies apply to all but superusers, roles with BYPASSRLS, and who has the
 * rights of the owner, unless they are forced on that one, too.
 */
function ownershipSql(schema: string, names: readonly string[]): string {
  const name = quoteText(schema)
  const relations = names.map(quoteText).join(', ')
  return `
    with me as (
      select role.oid, role.rolsuper as super, role.rolsuper or role.rolbypassrls as bypasses
      from pg_catalog.pg_roles as role
      where role.rolname = coalesce($1::text::name, current_user)),
    place as (select oid, nspname, nspowner from pg_catalog.pg_namespace where nspname = ${name}),
    relation as (
      select c.oid, c.relname, c.relowner, c.relkind,
        c.relrowsecurity and not me.bypasses
          and (c.relforcerowsecurity or not pg_catalog.pg_has_role(me.oid, c.relowner, 'USAGE'::text)) as filtered
      from pg_catalog.pg_class as c join place on place.oid = c.relnamespace cross join me
      where c.relname in (${relations})),
    found as (
      select 'schema'::text as what, nspname::text as name, nspowner as owner, false as untrue, false as filtered from place
      union all
      select 'table'::text, relname::text, relowner, relkind not in ('r', 'p') and relname <> 'feed_number', filtered
      from relation
      union all
      select 'trigger'::text, t.tgname::text, p.proowner, false, false from relation
        join pg_catalog.pg_trigger as t on t.tgrelid = relation.oid and not t.tgisinternal
        join pg_catalog.pg_proc as p on p.oid = t.tgfoid),
    owned as (
      select found.what, found.name, found.untrue, found.filtered, coalesce((
        select d.datdba from pg_catalog.pg_database as d
        where d.datname = pg_catalog.current_database() and pg_catalog.pg_get_userbyid(found.owner) = 'pg_database_owner'
      ), found.owner) as owner from found)
    select owned.what, owned.name, owned.untrue, owned.filtered, pg_catalog.pg_get_userbyid(owned.owner)::text as owner,
      coalesce(owned.owner = me.oid or role.rolsuper
        or (not me.super and pg_catalog.pg_has_role(me.oid, owned.owner, 'USAGE'::text)), false) as trusted
    from owned cross join me left join pg_catalog.pg_roles as role on role.oid = owned.owner
    order by owned.what, owned.name`
}
