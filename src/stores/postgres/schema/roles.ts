// Roles with the rights that each kind of user needs, and no others, for `holdfast migrate --roles`.
//
//   migrator   owns the schema, its tables and the views; changes them, and encrypts payloads anew
//   worker     performs runs: all statements of the store, except those that change or delete entries of a journal
//   starter    starts, sends to and controls runs; cannot read the key of completion tokens
//   viewer     reads the views: every column but payloads and metadata
//
// None of them can log in: a login role is made a member of one. Which rights a role needs follows from the statements of the
// store, and the contract suite is run as worker.

import { HoldfastError } from '../../../core/errors/error.ts'
import { shown } from '../../../core/text/suggest.ts'
import { again, connected, frame } from './schema-change.ts'
import type { ClientLike, PoolLike } from '../connection/database.ts'
import { asRole, assertOwned, migratorEnding, ownerOf, ownershipOf, setLocalRole } from './ownership.ts'
import { quoteName, quoteSchema, quoteText } from './schema-name.ts'
import { tableNames } from '../table-names.ts'
import { sqlStateOf } from '../connection/sql-state.ts'
import { assertViewsOwned, madeViews, viewNames, type MadeViews } from '../views.ts'

const kinds = ['migrator', 'worker', 'starter', 'viewer'] as const

export type RoleKind = (typeof kinds)[number]

type Rights = Readonly<Record<string, string>>

const read = 'select'
const add = 'select, insert'
const move = 'select, insert, update'
const keep = 'select, insert, update, delete'
const held = 'select, insert, delete'

const workers: Rights = {
  broadcasts: keep,
  chores: keep,
  feed: move,
  journal: add,
  keys: held,
  messages: move,
  migrations: read,
  projections: keep,
  runs: move,
  secrets: read,
  sequencer: 'select, update',
  sessions: keep,
  settings: read,
  tags: add,
  topics: keep,
  waits: keep,
  workflows: read,
}

const starters: Rights = {
  ...workers,
  feed: 'insert',
  projections: read,
  secrets: 'select (shard, notice_key)',
  sequencer: '',
  sessions: read,
  topics: move,
}

/** The columns of a viewer, where those are not all of them: neither payloads nor metadata. */
export const viewedColumns = {
  broadcasts: 'shard topic position id delivery policy at expires_at taken_by delivered_to',
  journal: 'shard run_id seq kind name meta at transition_id',
  messages: 'shard run_id position id name at outcome taken_by kind on_unread delivery retain_ms fate',
  runs:
    'shard id type version status readiness rank due seq base inbox control_request undo crashes token session deadline timeout_at ' +
    'expires_at key key_scope unique_key idempotency_key started_as parent_id tags created_at updated_at ended_at ' +
    'deleted_at delete_reason watched wake_names key_id feed',
} as const

const only = (columns: string): string => `select (${columns.split(' ').join(', ')})`

const viewers: Rights = {
  broadcasts: only(viewedColumns.broadcasts),
  feed: read,
  journal: only(viewedColumns.journal),
  messages: only(viewedColumns.messages),
  projections: read,
  runs: only(viewedColumns.runs),
  sessions: read,
  tags: read,
  topics: read,
  waits: read,
  workflows: read,
}

const rights = { worker: workers, starter: starters, viewer: viewers } as const

export interface RolesOptions {
  /** The name of the schema, as its user wrote it. */
  readonly schema: string
  /** The prefix of the names of the roles. @default that with which they were made; without one there are no roles */
  readonly prefix?: string | undefined
  /** Roles of these names that are there already are taken as ours. @default false */
  readonly adopt?: boolean | undefined
  /** The role that owns the schema, if it was named. @default the user of the connection, or the migrator */
  readonly owner?: string | undefined
  readonly onSql?: (sql: string) => void
  /** Views that are not there yet, but will be. */
  readonly plannedViews?: readonly MadeViews[]
}

/** The names of the roles, which all databases of a server share. */
export function roleNames(prefix: string): Readonly<Record<RoleKind, string>> {
  const named = (kind: RoleKind): string => `${prefix}_${kind}`
  return {
    migrator: prefix + migratorEnding,
    worker: named('worker'),
    starter: named('starter'),
    viewer: named('viewer'),
  }
}

/** The migrator of these roles, if the schema is its own already: then it is changed as that role, and stays its own. */
export async function migratorOf(
  pool: PoolLike,
  schema: string,
  given: string | undefined,
): Promise<string | undefined> {
  if (given !== undefined) checkPrefix(given)
  return connected(pool, async (client) => {
    const prefix = given ?? (await recordedPrefix(client, schema, undefined))
    return prefix === null ? undefined : wholeOwner(client, schema, roleNames(prefix).migrator)
  })
}

/** The migrator, if all of the schema is its own; undefined if not. */
async function wholeOwner(client: ClientLike, schema: string, migrator: string): Promise<string | undefined> {
  if ((await ownerOf(client, schema)) !== migrator) return undefined
  return (await ownershipOf(client, schema, migrator)).foreign.length === 0 ? migrator : undefined
}

/** Makes the roles that are missing, and gives each its rights and no others. Answers their prefix; null if there are none. */
export async function installRoles(pool: PoolLike, options: RolesOptions): Promise<string | null> {
  return connected(pool, async (client) => {
    const planned = await plan(client, options)
    if (planned === null) return null
    const execute = async (): Promise<void> => {
      for (const text of (await plan(client, options))?.statements ?? []) {
        options.onSql?.(text)
        await client.query({ text })
      }
    }
    await again(client, execute)
    return planned.prefix
  })
}

/** The statements that `installRoles()` would execute. */
export async function planRoles(pool: PoolLike, options: RolesOptions): Promise<readonly string[]> {
  return connected(pool, async (client) => (await plan(client, options))?.statements ?? [])
}

interface Plan {
  readonly prefix: string
  readonly statements: readonly string[]
}

/**
 * The statements to execute, once it is certain that no code of another role runs with the rights of the migrator, or gets
 * rights by it. Null if there are no roles.
 */
async function plan(client: ClientLike, options: RolesOptions): Promise<Plan | null> {
  const { schema } = options
  const recorded = await recordedPrefix(client, schema, options.owner)
  const prefix = prefixOf(options, recorded)
  if (prefix === null) return null
  const names = roleNames(prefix)
  const owner = await wholeOwner(client, schema, names.migrator)
  const as = owner ?? options.owner
  assertOwned(await ownershipOf(client, schema, as), schema, as)
  await assertViewsOwned(client, schema, as)
  const found = await look(client, options, prefix)
  // Roles that are only kept up to date were checked when they were made.
  if (options.prefix === undefined) return { prefix, statements: refreshing(options, prefix, found) }
  if (options.adopt !== true) assertOurs(found.roles, recorded !== null)
  return { prefix, statements: making(options, prefix, found) }
}

/** An attacker may have made a role of that name, to be given the rights of ours. */
function assertOurs(roles: Found['roles'], isRecorded: boolean): void {
  const unexpected = roles.find(({ isLogin, admins }) => !isRecorded || isLogin || admins.length > 0)
  if (unexpected === undefined) return
  const { name, isLogin, admins } = unexpected
  const why = isLogin
    ? 'it can log in'
    : admins.length > 0
      ? `${admins.map((admin) => shown(admin)).join(', ')} can give it to others`
      : 'this schema has no roles yet, so Holdfast did not make it for it'
  throw new HoldfastError(
    'INVALID_OPTION',
    `There is a role ${shown(name)}, and ${why}: its creator would get the rights of this schema with it. Choose ` +
      'another name with `--roles <prefix>`, or say `--adopt-roles` if it is yours.',
    { details: { role: name, canLogIn: isLogin, admins } },
  )
}

/** Letters that need no quotes in any SQL, and few enough for the longest of the names. */
const possiblePrefix = /^[a-z_][a-z0-9_]{0,50}$/

function checkPrefix(prefix: string): void {
  if (possiblePrefix.test(prefix) && !prefix.startsWith('pg_')) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `The names of roles begin with a letter and have lower case letters, digits and "_", 51 at most, and not "pg_" first. ` +
      `Got ${shown(prefix)}: give another one as \`--roles <prefix>\`.`,
  )
}

/** The prefix that the roles of a schema were made with; null if there are none. */
async function recordedPrefix(client: ClientLike, schema: string, owner: string | undefined): Promise<string | null> {
  const as = owner ?? (await migratorToBe(client, schema))
  const ownership = await ownershipOf(client, schema, as)
  assertOwned(ownership, schema, as)
  // A dry run comes before the tables.
  if (!ownership.present.has('settings') || ownership.untrue.includes('settings')) return null
  const text = `select value from ${quoteSchema(schema)}.settings where shard = 0 and name = 'roles'`
  const { rows } = await asRole(client, as, () => client.query({ text })).catch((error: unknown) => {
    // Tables of another owner: the migration says so.
    if (/^42(?!501)/.test(sqlStateOf(error) ?? '')) return { rows: [] }
    throw error
  })
  const found = rows[0]?.['value']
  return typeof found === 'string' ? found : null
}

/** The migrator that owns a schema, if the caller does not inherit its rights: it may be a member all the same. */
async function migratorToBe(client: ClientLike, schema: string): Promise<string | undefined> {
  const owner = await ownerOf(client, schema)
  if (owner?.endsWith(migratorEnding) !== true) return undefined
  return (await ownershipOf(client, schema)).foreign.length === 0 ? undefined : owner
}

/** The prefix is fixed with the first time: roles of another name would keep their rights. */
function prefixOf({ schema, prefix }: RolesOptions, found: string | null): string | null {
  if (prefix !== undefined) checkPrefix(prefix)
  if (found === null) return prefix ?? null
  checkPrefix(found)
  if (prefix === undefined || prefix === found) return found
  throw new HoldfastError(
    'INVALID_OPTION',
    `The roles of the schema ${shown(schema)} are called ${found}_… and keep that name. Got ${shown(prefix)}.`,
  )
}

/** The existing roles and views. */
interface Found {
  readonly roles: readonly FoundRole[]
  /** The role that makes the roles may act as the migrator. */
  readonly isMigrator: boolean
  readonly views: readonly MadeViews[]
  /** Tables that do not belong to the migrator. */
  readonly foreignTables: readonly string[]
  readonly database: string
}

interface FoundRole {
  readonly name: string
  readonly isLogin: boolean
  /** Roles besides superusers and ours that can make others members of it. */
  readonly admins: readonly string[]
}

async function look(client: ClientLike, { schema, plannedViews = [] }: RolesOptions, prefix: string): Promise<Found> {
  const names = Object.values(roleNames(prefix))
  const { rows } = await client.query({
    text: `select r.rolname::text as name, pg_catalog.pg_has_role(current_user, r.oid, 'usage'::text) as acts,
        r.rolcanlogin as login, coalesce((
          select pg_catalog.string_agg(distinct a.rolname::text, ' '::text) from pg_catalog.pg_auth_members as m
          join pg_catalog.pg_roles as a on a.oid = m.member
          where m.roleid = r.oid and m.admin_option and not a.rolsuper and a.rolname <> current_user), ''::text) as admins
      from pg_catalog.pg_roles as r where r.rolname in (${names.map(quoteText).join(', ')}) order by r.rolname`,
  })
  const foreignTables = await client.query({
    text: `select c.relname::text as name from pg_catalog.pg_class as c
      join pg_catalog.pg_namespace as n on n.oid = c.relnamespace join pg_catalog.pg_roles as r on r.oid = c.relowner
      where n.nspname = ${quoteText(schema)} and c.relname in (${tableNames.map(quoteText).join(', ')})
        and r.rolname <> ${quoteText(roleNames(prefix).migrator)} order by 1`,
  })
  const databases = await client.query({ text: 'select pg_catalog.current_database()::text as name' })
  const ours = viewNames.flatMap((view) => madeViews({ schema, views: [view], payloads: true }))
  const views = await client.query({
    text: `select schemaname::text as schema, viewname::text as name from pg_catalog.pg_views
      where schemaname in (${ours.map((set) => quoteText(set.schema)).join(', ')})`,
  })
  const isThere = new Set(views.rows.map((row) => `${String(row['schema'])} ${String(row['name'])}`))
  const planned = new Set(plannedViews.map((set) => set.schema))
  return {
    roles: rows.map((row) => ({
      name: String(row['name']),
      isLogin: row['login'] === true,
      admins: String(row['admins']).split(' ').filter(Boolean),
    })),
    isMigrator: rows.some((row) => row['name'] === roleNames(prefix).migrator && row['acts'] === true),
    // Those that we make, by name: any other object there keeps its owner.
    views: ours
      .map((set) => ({
        ...set,
        names: set.names.filter((name) => planned.has(set.schema) || isThere.has(`${set.schema} ${name}`)),
      }))
      .filter((set) => set.names.length > 0),
    foreignTables: foreignTables.rows.map((row) => String(row['name'])),
    database: String(databases.rows[0]?.['name']),
  }
}

/** Makes the roles, and gives the schema to the migrator, as which the rest is done. */
function making({ schema }: RolesOptions, prefix: string, found: Found): readonly string[] {
  const names = roleNames(prefix)
  const quoted = quoteSchema(schema)
  const migrator = quoteName(names.migrator)
  const isThere = new Set(found.roles.map(({ name }) => name))
  return [
    ...frame({ isCockroach: false }),
    ...kinds.filter((kind) => !isThere.has(names[kind])).map((kind) => `create role ${quoteName(names[kind])} nologin`),
    ...(found.isMigrator ? [] : [`grant ${migrator} to current_user`]),
    // Owners of schemas need this right on the database; the migrator makes those of the views, too.
    `grant create on database ${quoteName(found.database)} to ${migrator}`,
    `alter schema ${quoted} owner to ${migrator}`,
    ...tableNames.map((table) => `alter table ${quoted}.${table} owner to ${migrator}`),
    `alter sequence ${quoted}.feed_number owner to ${migrator}`,
    ...found.views.flatMap((view) => [
      `alter schema ${quoteSchema(view.schema)} owner to ${migrator}`,
      ...view.names.map((name) => `alter view ${quoteSchema(view.schema)}.${quoteName(name)} owner to ${migrator}`),
    ]),
    setLocalRole(names.migrator),
    ...granting(schema, prefix, found.views),
    `insert into ${quoted}.settings (shard, name, value) values (0, 'roles', ${quoteText(prefix)})
      on conflict (shard, name) do update set value = excluded.value`,
    'commit',
  ]
}

/** Brings the rights of roles up to date that are there, as the migrator. */
function refreshing({ schema }: RolesOptions, prefix: string, found: Found): readonly string[] {
  const { migrator } = roleNames(prefix)
  return [
    ...frame({ isCockroach: false }),
    // Objects that a member of the migrator has made in a migration belong to that member.
    ...found.foreignTables.map(
      (table) => `alter table ${quoteSchema(schema)}.${table} owner to ${quoteName(migrator)}`,
    ),
    setLocalRole(migrator),
    ...granting(schema, prefix, found.views),
    'commit',
  ]
}

function granting(schema: string, prefix: string, views: readonly MadeViews[]): readonly string[] {
  const names = roleNames(prefix)
  const quoted = quoteSchema(schema)
  const others = kinds
    .filter((kind) => kind !== 'migrator')
    .map((kind) => quoteName(names[kind]))
    .join(', ')
  const tables = tableNames.map((table) => `${quoted}.${table}`).join(', ')
  const number = `${quoted}.feed_number`
  return [
    `revoke all on schema ${quoted} from public, ${others}`,
    `revoke all on table ${tables} from public, ${others}`,
    `revoke all on sequence ${number} from public, ${others}`,
    `grant usage on schema ${quoted} to ${others}`,
    `grant usage on sequence ${number} to ${quoteName(names.worker)}, ${quoteName(names.starter)}`,
    ...Object.entries(rights).flatMap(([kind, granted]) =>
      Object.entries(granted)
        .filter(([, what]) => what !== '')
        .map(([table, what]) => `grant ${what} on ${quoted}.${table} to ${quoteName(names[kind as RoleKind])}`),
    ),
    ...views.flatMap((view) => viewRights(view, quoteName(names.viewer))),
  ]
}

/** No role may read a set with payloads until it is granted. */
function viewRights({ schema, names }: MadeViews, viewer: string): readonly string[] {
  if (schema.endsWith('_payloads')) return []
  const place = quoteSchema(schema)
  const views = names.map((name) => `${place}.${quoteName(name)}`).join(', ')
  return [`grant usage on schema ${place} to ${viewer}`, `grant select on ${views} to ${viewer}`]
}
