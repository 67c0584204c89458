// The ownership of the schema and its tables. The owner of a table can attach code to it (a check, a default, a policy, a
// trigger, an index), or put a view in its place, and that code runs with the rights of the role that writes or reads there.
// It runs with all rights of the connection: a role that was set is no protection, because any code can reset it
// (`set_config('role', 'none', true)`). So the login role counts, and not the role that is set; the catalog is queried, which
// runs no code, before any table is read; and a migration changes only objects whose owners that role trusts:
//
//   every role    itself, and superusers
//   most          also roles whose rights they have, and the one that they name and are a member of
//   a superuser   also a migrator as which only superusers can act: a superuser has the rights of every role, so nothing
//                 follows from those. The same for a role that can become a superuser

import { HoldfastError } from '../../../core/errors/error.ts'
import { shown } from '../../../core/text/suggest.ts'
import type { ClientLike } from '../connection/database.ts'
import { tableNames } from '../table-names.ts'
import { quoteName, quoteText } from './schema-name.ts'
import { quotedText } from '../../../core/text/printable.ts'

/** The one thing of ours besides tables that has a name in the schema before its version is there. */
const ourNames = [...tableNames, 'feed_number']

export interface Ownership {
  /** Our objects that exist. No other may be read: until then, another role may have put an object in its place. */
  readonly present: ReadonlySet<string>
  /** Objects that have the name of a table of ours, and are none: to read a view is to run code of its owner. */
  readonly untrue: readonly string[]
  /** Objects of other owners. */
  readonly foreign: readonly { readonly what: string; readonly owner: string }[]
  /** Tables whose policies of row-level security apply to this user. */
  readonly filtered: readonly string[]
  /** Triggers with a condition: a condition has no owner, and a role that may make triggers on a table need not own it. */
  readonly conditional: readonly string[]
}

/**
 * Looks at the catalog alone, which runs nothing. `as` is the role that was named, as which it is done; `names` what we make
 * in the schema.
 */
export async function ownershipOf(
  client: ClientLike,
  schema: string,
  as?: string,
  names: readonly string[] = ourNames,
): Promise<Ownership> {
  const { rows } = await client.query({ text: ownershipSql(schema, names), values: [as ?? null] })
  const foreign = rows.filter((row) => row['trusted'] !== true)
  const namesOf = (flag: string): readonly string[] =>
    rows.filter((row) => row[flag] === true).map((row) => String(row['name']))
  return {
    present: new Set(rows.filter((row) => row['what'] === 'table').map((row) => String(row['name']))),
    untrue: namesOf('untrue'),
    foreign: foreign.map((row) => ({
      what: `${String(row['what'])} ${quotedText(String(row['name']))}`,
      owner: String(row['owner']),
    })),
    filtered: namesOf('filtered'),
    conditional: namesOf('conditional'),
  }
}

/** Throws if an object belongs to a role whose code would run with the rights of the migrating role. */
export function assertOwned({ foreign, conditional }: Ownership, schema: string, as?: string): void {
  const [first] = foreign
  const [trigger] = conditional
  if (first !== undefined) throw belongsToOther(foreign, first, { schema, as })
  if (trigger === undefined) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `In the schema ${shown(schema)}, the trigger ${shown(trigger)} has a WHEN, which would run with your rights, and its ` +
      'author is not recorded. Drop the trigger, or create it again with the condition in its function.',
    { details: { schema, found: conditional } },
  )
}

function belongsToOther(
  foreign: Ownership['foreign'],
  { what, owner }: Ownership['foreign'][number],
  { schema, as }: { readonly schema: string; readonly as: string | undefined },
): HoldfastError {
  const rest = foreign.length === 1 ? '' : ` (and ${foreign.length - 1} more)`
  const whom = as === undefined || as === owner ? 'you' : shown(as)
  return new HoldfastError(
    'INVALID_OPTION',
    `In the schema ${shown(schema)}, the ${what}${rest} belongs to ${shown(owner)}, not to ${whom}: triggers and functions that its owner attached to it ` +
      `would run with all of your rights, under any role. Connect as ${shown(owner)}, or as a member of that role who is ` +
      'no superuser (and say `--owner` if that member does not inherit its rights), or choose another schema.',
    { details: { schema, owner, found: foreign.map((one) => `${one.what} of ${one.owner}`) } },
  )
}

/** The role that a schema belongs to; null if there is none. */
export async function ownerOf(client: ClientLike, schema: string): Promise<string | null> {
  const { rows } = await client.query({
    text: `select r.rolname::text as name
      from pg_catalog.pg_namespace as n join pg_catalog.pg_roles as r on r.oid = n.nspowner
      where n.nspname = ${quoteText(schema)}`,
  })
  const [row] = rows
  return row === undefined ? null : String(row['name'])
}

/** Reads as that role, if one is named. That is for a login role without rights of its own, and is no protection. */
export async function asRole<Answer>(
  client: ClientLike,
  role: string | undefined,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (role === undefined) return work()
  await client.query({ text: 'begin' })
  try {
    await client.query({ text: setLocalRole(role) })
    return await work()
  } finally {
    await client.query({ text: 'rollback' })
  }
}

/** Has a transaction go on as that role: its new objects belong to that role. */
export function setLocalRole(owner: string): string {
  return `set local role ${quoteName(owner)}`
}

/** The name of a role. Postgres takes "none" for no role at all, and goes on with all rights. */
export function checkOwner(owner: string): string {
  if (owner !== '' && owner.toLowerCase() !== 'none' && !owner.includes('\0')) return owner
  throw new HoldfastError('INVALID_OPTION', `The owner of a schema is the name of a role. Got ${shown(owner)}.`)
}

/** The suffix of the name of every migrator: `roles.ts` makes them. */
export const migratorEnding = '_migrator'

/**
 * The owner of a database owns objects of pg_database_owner. A foreign key onto a table of ours runs code that is attached to
 * the referencing table. Policies apply to all roles except superusers, roles with BYPASSRLS, and roles with the rights of
 * the owner, unless they are forced on that one, too.
 */
function ownershipSql(schema: string, names: readonly string[]): string {
  const name = quoteText(schema)
  const relations = names.map(quoteText).join(', ')
  return `
    with session as (
      select role.oid, exists (
        select 1 from pg_catalog.pg_roles as other
        where other.rolsuper and pg_catalog.pg_has_role(role.oid, other.oid, 'MEMBER'::text)) as super
      from pg_catalog.pg_roles as role where role.rolname = session_user),
    me as (
      select role.oid, role.rolsuper as super, role.rolsuper or role.rolbypassrls as bypasses
      from pg_catalog.pg_roles as role
      where role.rolname = coalesce($1::text::name, current_user)),
    place as (select oid, nspname, nspowner from pg_catalog.pg_namespace where nspname = ${name}),
    relation as (
      select c.oid, c.relname, c.relowner, c.relkind,
        c.relrowsecurity and not me.bypasses
          and (c.relforcerowsecurity or not pg_catalog.pg_has_role(me.oid, c.relowner, 'USAGE'::text)) as filtered
      from pg_catalog.pg_class as c join place on place.oid = c.relnamespace left join me on true
      where c.relname in (${relations})),
    found as (
      select 'schema'::text as what, nspname::text as name, nspowner as owner, false as untrue, false as filtered,
        false as conditional from place
      union all
      select 'table'::text, relname::text, relowner, relkind not in ('r', 'p') and relname <> 'feed_number', filtered, false
      from relation
      union all
      select 'trigger'::text, t.tgname::text, p.proowner, false, false, t.tgqual is not null from relation
        join pg_catalog.pg_trigger as t on t.tgrelid = relation.oid and not t.tgisinternal
        join pg_catalog.pg_proc as p on p.oid = t.tgfoid
      union all
      select distinct 'foreign key of the table'::text, other.relname::text, other.relowner, false, false, false from relation
        join pg_catalog.pg_constraint as k on k.confrelid = relation.oid and k.contype = 'f'
        join pg_catalog.pg_class as other on other.oid = k.conrelid),
    owned as (
      select found.what, found.name, found.untrue, found.filtered, found.conditional, coalesce((
        select d.datdba from pg_catalog.pg_database as d
        where d.datname = pg_catalog.current_database() and pg_catalog.pg_get_userbyid(found.owner) = 'pg_database_owner'
      ), found.owner) as owner from found)
    select owned.what, owned.name, owned.untrue, owned.filtered, owned.conditional,
      pg_catalog.pg_get_userbyid(owned.owner)::text as owner,
      coalesce(role.rolsuper or owned.owner = session.oid or case when session.super
        then not role.rolcanlogin and pg_catalog.right(role.rolname::text, ${migratorEnding.length}) = ${quoteText(migratorEnding)}
          and not exists (
            select 1 from pg_catalog.pg_auth_members as m join pg_catalog.pg_roles as member on member.oid = m.member
            where m.roleid = role.oid and not member.rolsuper)
        else pg_catalog.pg_has_role(session.oid, owned.owner, 'USAGE'::text)
          or (pg_catalog.pg_has_role(session.oid, me.oid, 'MEMBER'::text)
            and pg_catalog.pg_has_role(me.oid, owned.owner, 'USAGE'::text)) end, false)
      and coalesce($1::text is null or role.rolsuper or owned.owner = me.oid
        or (not me.super and pg_catalog.pg_has_role(me.oid, owned.owner, 'USAGE'::text)), false) as trusted
    from owned left join session on true left join me on true left join pg_catalog.pg_roles as role on role.oid = owned.owner
    order by owned.what, owned.name`
}
