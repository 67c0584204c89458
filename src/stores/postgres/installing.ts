// Makes a schema ready by the address of its database, with the views that are wanted: what `holdfast migrate` does.

import { migrate, planMigration, type MigrationPlan } from './migrating.ts'
import { withUrlOptions } from './open.ts'
import { openPool, settingsFor } from './pool.ts'
import { installViews, planViews, type ViewName } from './views.ts'

export interface InstallOptions {
  readonly url: string
  /** @default what the address says, or `holdfast` */
  readonly schema?: string | undefined
  /** @default what the address says, what the schema has, or 1 */
  readonly shards?: number | undefined
  /** The views to make; an empty list drops all. @default they stay as they are */
  readonly views?: readonly ViewName[] | undefined
  /** Nothing is changed. @default false */
  readonly isDryRun?: boolean
}

export interface Installed extends MigrationPlan {
  readonly schema: string
}

const connectMs = 14_000

/** Brings the schema up to date, and then its views. Tells what it executed, or in a dry run what it would. */
export async function installPostgres(given: InstallOptions): Promise<Installed> {
  const { views, isDryRun = false } = given
  const address = withUrlOptions({ url: given.url })
  const schema = given.schema ?? address.schema ?? 'holdfast'
  const options = { schema, shards: given.shards ?? address.shards }
  const settings = settingsFor(connectMs)
  const { pool } = await openPool({
    url: address.url ?? '',
    max: 1,
    settings,
    connectMs,
    // Whoever uses the connection next is told.
    onError: () => undefined,
  })
  try {
    if (isDryRun) {
      const plan = await planMigration(pool, options)
      return {
        ...plan,
        schema,
        statements: [...plan.statements, ...(views === undefined ? [] : planViews(schema, views))],
      }
    }
    const statements: string[] = []
    const onSql = (sql: string): void => void statements.push(sql)
    const migrated = await migrate(pool, { ...options, onSql })
    if (views !== undefined) await installViews(pool, schema, views, onSql)
    return { ...migrated, schema, statements }
  } finally {
    await pool.end()
  }
}
