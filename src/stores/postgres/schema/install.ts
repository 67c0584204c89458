// Makes a schema ready by the address of its database, with the requested views and roles: the work of `holdfast migrate`.

import { migrate, planMigration, type MigrationPlan } from './migrate.ts'
import { withUrlOptions } from '../open.ts'
import { openPool, settingsFor } from '../connection/pool.ts'
import { installRoles, migratorOf, planRoles } from './roles.ts'
import { installViews, madeViews, planViews, type ViewName } from '../views.ts'

export interface InstallOptions {
  readonly url: string
  /** @default that of the address, or `holdfast` */
  readonly schema?: string | undefined
  /** @default that of the address, that of the schema, or 1 */
  readonly shards?: number | undefined
  /**
   * The role that owns the schema, as which all of it is done: one that the user is a member of. @default the user of the
   * connection
   */
  readonly owner?: string | undefined
  /** The views to make; an empty list drops all. @default they stay as they are */
  readonly views?: readonly ViewName[] | undefined
  /** Their sets with payloads, too. @default false */
  readonly payloads?: boolean | undefined
  /** The prefix of the names of the roles. @default roles that were made before are kept up to date */
  readonly roles?: string | true | undefined
  /** Roles of these names that are there already are taken as ours. @default false */
  readonly adopt?: boolean | undefined
  /** Spreads the tables over the machines of Citus. @default tables that are spread already stay so */
  readonly citus?: boolean | undefined
  /** Nothing is changed. @default false */
  readonly isDryRun?: boolean
}

export interface Installed extends MigrationPlan {
  readonly schema: string
  /** The prefix of the names of its roles; null if there are none. */
  readonly roles: string | null
}

const connectMs = 14_000

/**
 * Brings the schema up to date, and then its views. Returns the statements that it executed, or in a dry run would execute.
 */
export async function installPostgres(given: InstallOptions): Promise<Installed> {
  const { views, payloads, adopt, isDryRun = false } = given
  const address = withUrlOptions({ url: given.url })
  const schema = given.schema ?? address.schema ?? 'holdfast'
  const { pool } = await openPool({
    url: address.url ?? '',
    max: 1,
    settings: (isSpread) => settingsFor(connectMs, 'long', isSpread),
    schema,
    // Each transaction of a change names its own.
    isolation: null,
    connectMs,
    // The next user of the connection gets the error.
    onError: () => undefined,
  })
  // By the name of the schema: so two in one server have roles of their own.
  const prefix = given.roles === true ? schema : given.roles
  try {
    const owner = given.owner ?? (await migratorOf(pool, schema, prefix))
    const options = { schema, shards: given.shards ?? address.shards, owner, citus: given.citus }
    if (isDryRun) {
      const plan = await planMigration(pool, options)
      const wanted = views === undefined ? null : { schema, views, payloads, owner }
      const forViews = wanted === null ? [] : await planViews(pool, wanted)
      const plannedViews = wanted === null ? [] : madeViews(wanted)
      const forRoles = await planRoles(pool, { schema, prefix, adopt, owner: given.owner, plannedViews })
      const statements = [...plan.statements, ...forViews, ...forRoles]
      return { ...plan, schema, roles: prefix ?? null, statements }
    }
    const statements: string[] = []
    const onSql = (sql: string): void => void statements.push(sql)
    const migrated = await migrate(pool, { ...options, isAdministered: true, onSql })
    if (views !== undefined) await installViews(pool, { schema, views, payloads, owner, onSql })
    const roles = await installRoles(pool, { schema, prefix, adopt, owner: given.owner, onSql })
    return { ...migrated, schema, roles, statements }
  } finally {
    await pool.end()
  }
}
