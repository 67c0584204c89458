// `holdfast migrate --citus`: it can be run again, tables of later versions are spread, too, and nothing happens under processes
// that work.

import { Pool } from 'pg'
import { afterAll, expect, it } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { installPostgres } from '../../src/stores/postgres/schema/install.ts'
import { migrate, planMigration } from '../../src/stores/postgres/schema/migrate.ts'
import { migrations } from '../../src/stores/postgres/schema/schema.ts'
import { tableNames } from '../../src/stores/postgres/table-names.ts'
import { missingCitus, startCitus, type CitusCluster } from '../support/citus.ts'

const missing = missingCitus()
let started: Promise<CitusCluster> | undefined
let pool: Pool | undefined

afterAll(async () => {
  await pool?.end()
  await (await started)?.remove()
}, 60_000)

async function connect(): Promise<{ readonly url: string; readonly pool: Pool }> {
  const { url } = await (started ??= startCitus())
  return { url, pool: (pool ??= new Pool({ connectionString: url })) }
}

const once = workflow('once', async (ctx) => ctx.step('a', () => 1))

/** The tables of a schema that are on more than one machine. */
async function placed(queries: Pool, schema: string): Promise<readonly string[]> {
  const { rows } = await queries.query<{ name: string }>(
    `select relname as name from pg_dist_partition join pg_class on pg_class.oid = logicalrelid
     where relnamespace = $1::regnamespace order by relname`,
    [schema],
  )
  return rows.map(({ name }) => name)
}

const spread = tableNames.filter((name) => name !== 'migrations' && name !== 'secrets')

it(
  'the tables are spread once, over both workers, and doing it again does nothing',
  { timeout: 60_000 },
  async (context) => {
    if (missing !== undefined) context.skip(missing)
    const { url, pool: queries } = await connect()
    const plan = await installPostgres({ url, schema: 'again', shards: 16, citus: true, isDryRun: true })
    expect(plan.statements.filter((text) => text.includes('create_distributed_table'))).not.toEqual([])
    expect(await placed(queries, 'public')).toEqual([])
    await installPostgres({ url, schema: 'again', shards: 16, citus: true })
    expect(await placed(queries, 'again')).toEqual(spread)
    expect(await planMigration(queries, { schema: 'again', citus: true })).toMatchObject({ statements: [] })
    const { statements } = await installPostgres({ url, schema: 'again', citus: true })
    expect(statements).toEqual([])
    const { rows } = await queries.query<{ ours: number }>(
      `select count(*)::integer as ours from generate_series(0, 15) as shard join citus_shards on shardid =
       get_shard_id_for_distribution_column('again.runs', shard::smallint) group by nodeport`,
    )
    // By a hash: 9 and 7.
    expect(Math.max(...rows.map(({ ours }) => ours))).toBeLessThan(10)
    expect(rows).toHaveLength(2)
  },
)

it(
  'a later version changes tables that are spread, and spreads those that are not',
  { timeout: 60_000 },
  async (context) => {
    if (missing !== undefined) context.skip(missing)
    const { url, pool: queries } = await connect()
    await migrate(queries, { schema: 'later', shards: 8, citus: true })
    // As a table that an older version did not have.
    await queries.query(`select undistribute_table('later.chores')`)
    const next = (schema: string): string => `
    -- Two statements; of which one has a semicolon in a comment.
    alter table ${schema}.runs add column later text not null default 'a;b';
    create index runs_later on ${schema}.runs (shard, later)`
    await migrate(queries, { schema: 'later', migrations: [...migrations, next] })
    expect(await placed(queries, 'later')).toEqual(spread)
    const store = await openPostgresStore({ url, schema: 'later' })
    const holdfast = await createHoldfast({ store, workflows: [once], migrate: false })
    await holdfast.work()
    const run = await holdfast.start(once)
    expect(await run.result()).toBe(1)
    await holdfast.close()
  },
)

it('tables are not spread under a process that works', { timeout: 60_000 }, async (context) => {
  if (missing !== undefined) context.skip(missing)
  const { url, pool: queries } = await connect()
  const store = await openPostgresStore({ url, schema: 'busy', shards: 8 })
  const holdfast = await createHoldfast({ store, workflows: [once] })
  await holdfast.work()
  await expect(migrate(queries, { schema: 'busy', citus: true })).rejects.toThrow('Stop all processes')
  expect(await placed(queries, 'busy')).toEqual([])
  const run = await holdfast.start(once)
  expect(await run.result()).toBe(1)
  await holdfast.close()
  // Runs that are there come along.
  await migrate(queries, { schema: 'busy', citus: true })
  const again = await createHoldfast({ store: await openPostgresStore({ url, schema: 'busy' }), migrate: false })
  expect(await again.count({})).toMatchObject({ count: 1 })
  expect((await again.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  await again.close()
})
