// `holdfast migrate`: creates the tables, or brings them up to date; or prints the SQL, to be executed elsewhere.

import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Store } from '../../../store.ts'
import { examples, type Act, type Call } from '../../command-call.ts'
import { visible } from '../../../core/text/printable.ts'
import { whole } from '../../input/option-values.ts'
import { shownStore } from '../../input/store-address.ts'
import { usage } from '../../usage.ts'

interface MigrateOptions {
  readonly dryRun?: boolean
  readonly views?: string
  readonly payloads?: boolean
  readonly roles?: string | true
  readonly adoptRoles?: boolean
  readonly schema?: string
  readonly shards?: number
  readonly owner?: string
  readonly citus?: boolean
}

/** The changes that were made, or would be. */
interface Outcome {
  readonly from: number
  readonly to: number
  readonly statements: readonly string[]
  readonly schema?: string
  readonly shards?: number
  /** The schemas of the views that were asked for. */
  readonly views?: readonly string[] | undefined
  /** The roles of the schema. */
  readonly roles?: readonly string[] | undefined
}

export function registerMigrate(program: Command, act: Act): void {
  const command = program
    .command('migrate')
    .summary('create the tables of a store, or bring them up to date')
    .description(
      'Creates the tables of a store, or brings them up to date. Safe to run again and from many machines at once. Every ' +
        'Holdfast does the same when it opens, except for Postgres in production: there it is done before a deployment.',
    )
    .option('--dry-run', 'print the SQL that would be executed, and change nothing')
    .option('--schema <name>', 'Postgres: the schema of the tables (holdfast)')
    .option(
      '--shards <n>',
      'Postgres: over how many shards runs are spread, fixed from the start (1)',
      whole('--shards', 1),
    )
    .option(
      '--owner <role>',
      'Postgres: migrate as this role, which owns the schema; you must be a member of it, and not a superuser',
    )
    .option(
      '--citus',
      'Postgres: spread the tables over the workers of Citus, while nothing works in the schema; a later migration keeps them so',
    )
    .option('--views <names>', 'Postgres: create read-only views: runs, instances, waits, queues; none drops them')
    .option('--payloads', 'Postgres, with --views: create a second set of them that shows payloads')
    .option(
      '--roles [prefix]',
      'Postgres: create the roles migrator, worker, starter and viewer, with the rights that each needs (the schema_…)',
    )
    .option('--adopt-roles', 'Postgres, with --roles: adopt existing roles of these names')
    .addHelpText(
      'after',
      examples(
        'migrate --store sqlite:app.db',
        'migrate --store postgres://app@db/app --dry-run > next.sql',
        'migrate --store postgres://app@db/app --views instances,queues',
        'migrate --store postgres://admin@db/app --roles shop',
        'migrate --store postgres://app@coordinator/app --shards 16 --citus',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<MigrateOptions>()
    const store = await call.store('creatable')
    const outcome = await perform(call, store, options)
    await report(call, shownStore(store), outcome, options.dryRun === true)
  })
}

async function perform(call: Call, store: string | Store, options: MigrateOptions): Promise<Outcome | null> {
  const isDryRun = options.dryRun === true
  if (typeof store === 'string' && /^postgres(?:ql)?:/.test(store)) return onPostgres(store, options)
  for (const name of ['schema', 'shards', 'owner', 'citus', 'views', 'payloads', 'roles', 'adoptRoles'] as const) {
    const option = name === 'adoptRoles' ? 'adopt-roles' : name
    if (options[name] !== undefined) throw usage(`--${option} is for Postgres: ${shownStore(store)} has no such thing.`)
  }
  const path = typeof store === 'string' ? /^(?:sqlite|turso|libsql):(?!\/\/)(.*)$/s.exec(store)?.[1] : undefined
  if (path !== undefined) {
    const { planSqliteMigration } = await import('../../../stores/sqlite/schema/plan-migration.ts')
    const plan = await planSqliteMigration(resolve(call.io.cwd, path))
    if (!isDryRun) await call.open({ store: 'creatable', migrate: true, warnsOfRights: true })
    return plan
  }
  if (isDryRun) throw usage(`--dry-run is for files and Postgres: ${shownStore(store)} does not say what it would do.`)
  await call.open({ store: 'creatable', migrate: true, warnsOfRights: true })
  return null
}

async function onPostgres(url: string, options: MigrateOptions): Promise<Outcome> {
  const { dryRun, views, payloads = false, roles, adoptRoles: adopt, schema, shards, owner, citus } = options
  if (payloads && (views === undefined || views === 'none')) throw usage('--payloads needs --views with a name.')
  if (adopt === true && roles === undefined) throw usage('--adopt-roles needs --roles.')
  // Loaded on demand: a user of another store needs no Postgres driver.
  const { installPostgres } = await import('../../../stores/postgres/schema/install.ts')
  const { parseViews, viewSchema } = await import('../../../stores/postgres/views.ts')
  const { roleNames } = await import('../../../stores/postgres/schema/roles.ts')
  const wanted = views === undefined ? undefined : parseViews(views)
  const isDryRun = dryRun === true
  const installed = await installPostgres({
    url,
    schema,
    shards,
    owner,
    citus,
    views: wanted,
    payloads,
    roles,
    adopt,
    isDryRun,
  })
  const sets = payloads ? (['plain', 'payloads'] as const) : (['plain'] as const)
  const places = wanted?.flatMap((name) => sets.map((set) => viewSchema(installed.schema, name, set)))
  const named = installed.roles === null ? undefined : Object.values(roleNames(installed.roles))
  return { ...installed, views: places, roles: named }
}

async function report(call: Call, address: string, outcome: Outcome | null, isDryRun: boolean): Promise<void> {
  const { printer } = call
  if (outcome === null) {
    return printer.answer({ store: address, isCurrent: true }, `The tables of ${address} are up to date.`)
  }
  const { statements, ...rest } = outcome
  const { from, to, views, roles } = rest
  const versions = { store: address, ...rest }
  const verb = isDryRun ? 'would go' : 'went'
  const nothing = views === undefined && roles === undefined ? ', nothing to do' : ''
  const change = from === to ? `are up to date: version ${to}${nothing}` : `${verb} from version ${from} to ${to}`
  const sentence = `The tables of ${address} ${change}.`
  if (!isDryRun)
    return printer.answer({ ...versions, isCurrent: true }, sentence, ...aboutViews(views), ...aboutRoles(roles))
  // Comments and statements only, so that it can be piped into psql or sqlite3.
  const sql = statements.map((text) => `${text.trim().replace(/;$/, '')};`)
  await printer.answer({ ...versions, statements: sql }, `-- ${sentence}`, ...sql.flatMap((text) => text.split('\n')))
}

function aboutViews(views: readonly string[] | undefined): readonly string[] {
  if (views === undefined) return []
  return [views.length === 0 ? 'The views are dropped.' : `The views are in ${views.map(visible).join(', ')}.`]
}

function aboutRoles(roles: readonly string[] | undefined): readonly string[] {
  return roles === undefined ? [] : [`The roles ${roles.map(visible).join(', ')} have their rights.`]
}
