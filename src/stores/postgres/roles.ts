// Roles with the rights that each kind of user needs, and no others: what `holdfast migrate --roles` makes.
//
//   migrator   owns the schema, its tables and the views; changes them, and encrypts payloads anew
//   worker     performs runs: all that the store does, but for changing or deleting what a journal says
//   starter    starts, sends to and steers runs; cannot read what tokens are made with
//   viewer     reads the views: every column but payloads and metadata
//
// None of them can log in: whoever does is made a member of one. Which rights a role needs follows from the statements of the
// store, and the contract suite is run as worker.

import { HoldfastError } from '../../core/error.ts'
import { shown } from '../../core/suggest.ts'
import { again, connected, frame } from './changing.ts'
import type { ClientLike, PoolLike } from './database.ts'
import { quoteName, quoteSchema, quoteText } from './schema-name.ts'
import { tableNames } from './schema.ts'
import { sqlStateOf } from './sql-state.ts'
import { viewNames, viewSchema, type MadeViews } from './views.ts'

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
  runs: move,
  secrets: read,
  sequencer: 'select, update',
  sessions: move,
  settings: read,
  tags: add,
  topics: move,
  waits: held,
  workflows: read,
}

const starters: Rights = {
  ...workers,
  feed: 'insert',
  secrets: 'select (shard, notice_key)',
  sequencer: '',
  sessions: read,
}

/** The columns of a viewer, where those are not all of them: neither payloads nor metadata. */
export const viewedColumns = {
  broadcasts: 'shard topic position id delivery policy at expires_at taken_by told',
  journal: 'shard run_id seq kind name meta at transition_id',
  messages: 'shard run_id position id name at outcome taken_by kind policy fate',
  runs:
    'shard id type version status readiness rank due seq base inbox wish undo crashes token session deadline timeout_at ' +
    'expires_at key key_scope unique_key idempotency_key started_as parent_id tags created_at updated_at ended_at ' +
    'deleted_at delete_reason watched wants key_id',
} as const

const only = (columns: string): string => `select (${columns.split(' ').join(', ')})`

const viewers: Rights = {
  broadcasts: only(viewedColumns.broadcasts),
  feed: read,
  journal: only(viewedColumns.journal),
  messages: only(viewedColumns.messages),
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
  /** What the names of the roles begin with. @default what they were made with; without that there are none */
  readonly prefix?: string | undefined
  readonly onSql?: (sql: string) => void
  /** Views that are not there yet, but will be. */
  readonly plannedViews?: readonly MadeViews[]
}

/** The names of the roles, which all databases of a server share. */
export function roleNames(prefix: string): Readonly<Record<RoleKind, string>> {
  const named = (kind: RoleKind): string => `${prefix}_${kind}`
  return { migrator: named('migrator'), worker: named('worker'), starter: named('starter'), viewer: named('viewer') }
}

/** The migrator of these roles, if the schema is its own already: then it is changed with the rights of that role alone. */
export async function migratorOf(pool: PoolLike, schema: string, prefix: string): Promise<string | undefined> {
  checkPrefix(prefix)
  const { migrator } = roleNames(prefix)
  const { rows } = await connected(pool, (client) =>
    client.query({
      text: `select 1 as one from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner
        where n.nspname = ${quoteText(schema)} and r.rolname = ${quoteText(migrator)}`,
    }),
  )
  return rows.length === 0 ? undefined : migrator
}

/** Makes the roles that are missing, and gives each its rights and no others. Answers their prefix; null if there are none. */
export async function installRoles(pool: PoolLike, options: RolesOptions): Promise<string | null> {
  return connected(pool, async (client) => {
    const prefix = await prefixOf(client, options)
    if (prefix === null) return null
    const execute = async (): Promise<void> => {
      for (const text of transactionOf(options, prefix, await look(client, options, prefix))) {
        options.onSql?.(text)
        await client.query({ text })
      }
    }
    await again(client, execute)
    return prefix
  })
}

/** What `installRoles()` would execute. */
export async function planRoles(pool: PoolLike, options: RolesOptions): Promise<readonly string[]> {
  return connected(pool, async (client) => {
    const prefix = await prefixOf(client, options)
    return prefix === null ? [] : transactionOf(options, prefix, await look(client, options, prefix))
  })
}

/** Letters that need no quotes in anybody's SQL, and few enough for the longest of the names. */
const possiblePrefix = /^[a-z_][a-z0-9_]{0,50}$/

function checkPrefix(prefix: string): void {
  if (possiblePrefix.test(prefix) && !prefix.startsWith('pg_')) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `The names of roles begin with a letter and have lower case letters, digits and "_", 51 at most, and not "pg_" first. ` +
      `Got ${shown(prefix)}: give another one as \`--roles <prefix>\`.`,
  )
}

/** The prefix is fixed with the first time: roles of another name would keep their rights. */
async function prefixOf(client: ClientLike, { schema, prefix }: RolesOptions): Promise<string | null> {
  if (prefix !== undefined) checkPrefix(prefix)
  const text = `select value from ${quoteSchema(schema)}.settings where shard = 0 and name = 'roles'`
  const { rows } = await client.query({ text }).catch((error: unknown) => {
    // A dry run comes before the tables.
    if (/^(?:3F000|42P01)$/.test(sqlStateOf(error) ?? '')) return { rows: [] }
    throw error
  })
  const found = rows[0]?.['value']
  if (typeof found !== 'string') return prefix ?? null
  if (prefix === undefined || prefix === found) return found
  throw new HoldfastError(
    'INVALID_OPTION',
    `The roles of the schema ${shown(schema)} are called ${found}_… and keep that name. Got ${shown(prefix)}.`,
  )
}

/** What is there of roles and views. */
interface Found {
  readonly roles: ReadonlySet<string>
  /** Who makes the roles may act as the migrator. */
  readonly isMigrator: boolean
  readonly views: readonly MadeViews[]
  readonly database: string
}

async function look(client: ClientLike, { schema, plannedViews = [] }: RolesOptions, prefix: string): Promise<Found> {
  const names = Object.values(roleNames(prefix))
  const { rows } = await client.query({
    text: `select rolname::text as name, pg_catalog.pg_has_role(current_user, oid, 'usage') as acts
      from pg_catalog.pg_roles where rolname in (${names.map(quoteText).join(', ')})`,
  })
  const databases = await client.query({ text: 'select pg_catalog.current_database()::text as name' })
  const sets = viewNames.flatMap((name) => [viewSchema(schema, name), viewSchema(schema, name, 'payloads')])
  const views = await client.query({
    text: `select schemaname::text as schema, viewname::text as name from pg_catalog.pg_views
      where schemaname in (${sets.map(quoteText).join(', ')}) order by 1, 2`,
  })
  const found = new Map<string, Set<string>>(plannedViews.map((view) => [view.schema, new Set(view.names)]))
  for (const row of views.rows) {
    const place = String(row['schema'])
    found.set(place, (found.get(place) ?? new Set()).add(String(row['name'])))
  }
  return {
    roles: new Set(rows.map((row) => String(row['name']))),
    isMigrator: rows.some((row) => row['name'] === roleNames(prefix).migrator && row['acts'] === true),
    views: Array.from(found, ([place, of]) => ({ schema: place, names: [...of] })),
    database: String(databases.rows[0]?.['name']),
  }
}

function transactionOf({ schema }: RolesOptions, prefix: string, found: Found): readonly string[] {
  const names = roleNames(prefix)
  const quoted = quoteSchema(schema)
  const [migrator, ...users] = kinds.map((kind) => quoteName(names[kind])) as [string, ...string[]]
  const others = users.join(', ')
  const tables = tableNames.map((table) => `${quoted}.${table}`).join(', ')
  const number = `${quoted}.feed_number`
  return [
    ...frame({ isCockroach: false }),
    ...kinds
      .filter((kind) => !found.roles.has(names[kind]))
      .map((kind) => `create role ${quoteName(names[kind])} nologin`),
    ...(found.isMigrator ? [] : [`grant ${migrator} to current_user`]),
    // Owners of schemas need this right on the database; the migrator makes those of the views, too.
    `grant create on database ${quoteName(found.database)} to ${migrator}`,
    `alter schema ${quoted} owner to ${migrator}`,
    ...tableNames.map((table) => `alter table ${quoted}.${table} owner to ${migrator}`),
    `alter sequence ${number} owner to ${migrator}`,
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
    ...found.views.flatMap((view) => viewRights(view, migrator, quoteName(names.viewer))),
    `insert into ${quoted}.settings (shard, name, value) values (0, 'roles', ${quoteText(prefix)})
      on conflict (shard, name) do update set value = excluded.value`,
    'commit',
  ]
}

/** A set with payloads is nobody's until somebody grants it. */
function viewRights({ schema, names }: MadeViews, migrator: string, viewer: string): readonly string[] {
  const place = quoteSchema(schema)
  return [
    `alter schema ${place} owner to ${migrator}`,
    ...names.map((name) => `alter view ${place}.${quoteName(name)} owner to ${migrator}`),
    ...(schema.endsWith('_payloads')
      ? []
      : [`grant usage on schema ${place} to ${viewer}`, `grant select on all tables in schema ${place} to ${viewer}`]),
  ]
}
