// The schema: made once, by the process that comes first, kept by those who know it, and never touched by those who do not.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { assertClient, schemaVersion } from '../../../../../src/stores/postgres/schema/client-version.ts'
import { installPostgres } from '../../../../../src/stores/postgres/schema/install.ts'
import { migrate, planMigration } from '../../../../../src/stores/postgres/schema/migrate.ts'
import { migrations, type Migration } from '../../../../../src/stores/postgres/schema/schema.ts'
import { tableNames } from '../../../../../src/stores/postgres/table-names.ts'
import { viewNames } from '../../../../../src/stores/postgres/views.ts'
import { childProgram } from '../../../../support/child-program.ts'
import { missingPgbouncer, startPgbouncer } from '../../../../support/pgbouncer.ts'
import { sharedPostgres } from '../../../../support/postgres-shared.ts'
import { emptyPlace, migratedPlace, openPool, type Place } from '../database.ts'

const execute = promisify(execFile)

/** What a later version could add. */
const next: Migration = (schema) =>
  `alter table ${schema}.runs add column later text; create table ${schema}.later (shard smallint)`
const newer = [...migrations, next]

/** All versions up to that one. */
const versions = (last: number): readonly number[] => Array.from({ length: last + 1 }, (_, version) => version)

async function versionsIn({ quoted, rows }: Place): Promise<readonly unknown[]> {
  const found = await rows(`select version from ${quoted}.migrations order by version`)
  return found.map((row) => row['version'])
}

const relationsIn = async ({ schema, rows }: Place): Promise<readonly unknown[]> => {
  const found = await rows(`select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = '${schema}' and c.relkind = 'r' order by 1`)
  return found.map((row) => row['name'])
}

const raiseMinClient = ({ quoted, rows }: Place, to: number): Promise<unknown> =>
  rows(`update ${quoted}.settings set value = '${to}' where shard = 0 and name = 'min-client'`)

describe('migrating', () => {
  it('makes the tables with all that is fixed from then on, and doing it again changes nothing (HE-S2)', async () => {
    const place = await emptyPlace()
    const { pool, schema, quoted, rows } = place
    expect(await migrate(pool, { schema, shards: 4 })).toEqual({ from: 0, to: schemaVersion, shards: 4 })
    expect(await relationsIn(place)).toEqual(tableNames)
    const before = await rows(`select * from ${quoted}.settings order by name`)
    expect(before.map(({ name, value }) => [name, value])).toEqual([
      ['min-client', '12'],
      ['shards', '4'],
    ])
    const sent: string[] = []
    const again = { schema, onSql: (sql: string) => void sent.push(sql) }
    expect(await migrate(pool, again)).toEqual({ from: schemaVersion, to: schemaVersion, shards: 4 })
    expect(sent).toEqual([])
    expect(await rows(`select * from ${quoted}.settings order by name`)).toEqual(before)
  })

  it('makes no check constraint, whose text the server would read with every statement that writes to the table', async () => {
    const { schema, rows } = await migratedPlace()
    const found = await rows(`select conname from pg_constraint as k join pg_namespace as n on n.oid = k.connamespace
      where n.nspname = '${schema}' and k.contype = 'c'`)
    expect(found).toEqual([])
  })

  it('of a schema that is right already is one look at the catalog and one read', async () => {
    const { pool, schema } = await migratedPlace()
    const sent: string[] = []
    const counting = {
      end: () => Promise.resolve(),
      connect: async () => {
        const client = await pool.connect()
        return {
          query: (config: { readonly text: string }) => {
            sent.push(config.text)
            return client.query(config)
          },
          release: () => client.release(),
        }
      },
    }
    await migrate(counting, { schema })
    expect(sent).toHaveLength(2)
    expect(sent[0]).toContain('pg_catalog.pg_class')
    expect(sent[1]).toMatch(/^select/)
  })

  it('by ten pools at once on an empty database does everything once', async () => {
    const place = await emptyPlace()
    const { schema } = place
    const url = await sharedPostgres()
    const pools = Array.from({ length: 10 }, () => openPool(url))
    const answers = await Promise.all(pools.map((pool) => migrate(pool, { schema, migrations: newer })))
    const did = answers.filter(({ from, to }) => from < to)
    expect(answers.every(({ to }) => to === newer.length)).toBe(true)
    // One may have made the first version and another the next.
    expect(did.length).toBeGreaterThanOrEqual(1)
    expect(await versionsIn(place)).toEqual(versions(newer.length))
  })

  it('by eight processes that boot at once leaves one schema', async () => {
    const place = await emptyPlace()
    const url = await sharedPostgres()
    const program = await childProgram('test/chaos/postgres-child.ts')
    const startAt = String(Date.now() + 3_000)
    const children = Array.from({ length: 8 }, () => execute(process.execPath, [program, url, place.schema, startAt]))
    const answers = (await Promise.all(children)).map(
      ({ stdout }) => JSON.parse(stdout) as { from: number; to: number },
    )
    expect(answers.map(({ to }) => to)).toEqual(Array.from({ length: 8 }, () => schemaVersion))
    expect(answers.filter(({ from }) => from === 0)).toHaveLength(1)
    expect(await versionsIn(place)).toEqual(versions(schemaVersion))
  })

  it('goes through a pooler in transaction mode, with views and all, and leaves nothing on its connections', async (context) => {
    const missing = missingPgbouncer()
    if (missing !== undefined) context.skip(missing)
    const place = await emptyPlace()
    const pooler = await startPgbouncer(await sharedPostgres(), { default_pool_size: 1 })
    onTestFinished(() => pooler.stop())
    const { schema } = place
    const plan = await installPostgres({ url: pooler.url, schema, views: viewNames, isDryRun: true })
    const done = await installPostgres({ url: pooler.url, schema, views: viewNames })
    expect(done).toEqual({ ...plan, schema })
    const pool = openPool(pooler.url)
    const { rows } = await pool.query<{ lock: string }>(`select current_setting('lock_timeout') as lock`)
    expect(rows).toEqual([{ lock: '0' }])
  })

  it('keeps what an older schema holds', async () => {
    const place = await emptyPlace()
    const { pool, schema, quoted, rows } = place
    await migrate(pool, { schema, shards: 3 })
    await rows(`insert into ${quoted}.runs (shard, id, type, version, created_at, updated_at)
      values (0, gen_random_uuid(), 'old', 1, 5, 5)`)
    expect(await migrate(pool, { schema, migrations: newer })).toEqual({
      from: schemaVersion,
      to: newer.length,
      shards: 3,
    })
    expect(await rows(`select type, later from ${quoted}.runs`)).toEqual([{ type: 'old', later: null }])
  })

  it('that fails leaves nothing of its version behind, and the versions before it', async () => {
    const place = await emptyPlace()
    const { pool, schema } = place
    const broken: Migration = (name) =>
      `create table ${name}.half (a integer); create table ${name}.half (a integer, b nonsense)`
    await expect(migrate(pool, { schema, migrations: [...migrations, broken] })).rejects.toMatchObject({ code: 'BUG' })
    expect(await versionsIn(place)).toEqual(versions(schemaVersion))
    expect(await relationsIn(place)).toEqual(tableNames)
    expect(await migrate(pool, { schema, migrations: newer })).toMatchObject({ from: schemaVersion, to: newer.length })
  })

  it('waits for a lock that others hold, and does not make them wait', async () => {
    const place = await migratedPlace()
    const { pool, schema, quoted } = place
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query(`select * from ${quoted}.runs for update`)
    const waiting = migrate(pool, { schema, migrations: newer })
    // It gives up its turn after a short while, and then comes again: others get through meanwhile.
    const reader = await pool.query(`select count(*)::int as count from ${quoted}.runs`)
    expect(reader.rows).toEqual([{ count: 0 }])
    await holder.query('commit')
    holder.release()
    expect(await waiting).toMatchObject({ from: schemaVersion, to: newer.length })
  })

  it('makes the indexes of what is unique, what is claimed next and what is due, each of those rows alone (SW-S5)', async () => {
    const { schema, rows } = await migratedPlace()
    const found = await rows(`select indexname as name, indexdef as definition from pg_indexes
      where schemaname = '${schema}' and tablename = 'runs'`)
    const definitionOf = (name: string): string =>
      String(found.find((row) => row['name'] === name)?.['definition']).replace(/^.* USING btree /, '')
    expect(definitionOf('runs_at_rest')).toMatch(/^\(shard, type, id\) WHERE \(readiness = ANY .*'idle'.*'blocked'/)
    expect(definitionOf('runs_ready')).toMatch(
      /^\(shard, type, version, rank, due, id\) WHERE \(readiness = 'ready'::text\)$/,
    )
    expect(definitionOf('runs_timed')).toMatch(
      /^\(shard, type, version, due, id\) WHERE \(readiness = 'timed'::text\)$/,
    )
    const nameOf = (row: Readonly<Record<string, unknown>>): string => String(row['name'])
    const unique = found.filter((row) => String(row['definition']).startsWith('CREATE UNIQUE INDEX')).map(nameOf)
    expect(unique.sort()).toEqual(['runs_pkey'])
    expect(found.every((row) => String(row['definition']).includes('btree (shard, '))).toBe(true)
  })

  it('says how each table is vacuumed, by what is done to it', async () => {
    const { schema, rows } = await migratedPlace()
    const found = await rows(`select c.relname as name, array_to_string(c.reloptions, ',') as options from pg_class c
      join pg_namespace n on n.oid = c.relnamespace where n.nspname = '${schema}' and c.reloptions is not null order by 1`)
    const byKind = new Map<string, string[]>()
    for (const row of found) {
      const options = String(row['options'])
      expect(options).toContain('vacuum_truncate=off')
      const bound = (name: string): string => new RegExp(`${name}=([\\d.]+)`).exec(options)?.[1] ?? 'usual'
      const kind = [
        bound('autovacuum_vacuum_scale_factor'),
        bound('autovacuum_vacuum_threshold'),
        bound('autovacuum_vacuum_insert_threshold'),
      ].join(' ')
      byKind.set(kind, [...(byKind.get(kind) ?? []), String(row['name'])])
    }
    expect(Object.fromEntries(byKind)).toEqual({
      '0 1000 usual': ['chores', 'projections', 'sequencer', 'sessions'],
      '0.02 5000 usual': ['feed', 'messages', 'runs'],
      '0.02 1000 usual': ['broadcasts', 'keys', 'topics', 'waits'],
      'usual usual 200000': ['journal', 'tags'],
    })
  })
})

describe('a plan', () => {
  it('is exactly what would be executed, and changes nothing', async () => {
    const place = await emptyPlace()
    const { pool, schema, rows } = place
    const plan = await planMigration(pool, { schema, shards: 2 })
    expect(plan).toMatchObject({ from: 0, to: schemaVersion, shards: 2 })
    expect(await rows(`select 1 from pg_namespace where nspname = '${schema}'`)).toEqual([])
    const sent: string[] = []
    await migrate(pool, { schema, shards: 2, onSql: (sql) => void sent.push(sql) })
    expect(sent).toEqual(plan.statements)
    expect(await planMigration(pool, { schema })).toEqual({
      from: schemaVersion,
      to: schemaVersion,
      shards: 2,
      statements: [],
    })
  })

  it('can be executed by hand: then there is nothing left to do', async () => {
    const place = await emptyPlace()
    const { pool, schema, rows } = place
    const { statements } = await planMigration(pool, { schema, shards: 2, migrations: newer })
    await rows(statements.join(';\n'))
    expect(await migrate(pool, { schema, migrations: newer })).toEqual({
      from: newer.length,
      to: newer.length,
      shards: 2,
    })
    expect(await versionsIn(place)).toEqual(versions(newer.length))
  })

  it('begins where the schema stands', async () => {
    const { pool, schema } = await migratedPlace()
    const { from, to, statements } = await planMigration(pool, { schema, migrations: newer })
    expect([from, to]).toEqual([schemaVersion, newer.length])
    expect(statements.join('\n')).not.toContain('create schema')
    expect(statements.join('\n')).not.toContain('.journal (')
  })
})

describe('a schema of another owner', () => {
  it.each([
    ['runs', 'create table X.runs (id integer)'],
    ['migrations', 'create table X.migrations (id integer, name text)'],
    ['messages', 'create view X.messages as select 1 as one'],
  ])('that has a "%s" of its own is not touched', async (name, sql) => {
    const place = await emptyPlace()
    const { pool, schema, quoted, rows } = place
    await rows(`create schema ${quoted}; ${sql.replace('X', quoted)}`)
    const refused = {
      code: 'INVALID_OPTION',
      message: expect.stringContaining(`named ${name}, and Holdfast`) as string,
    }
    await expect(migrate(pool, { schema })).rejects.toMatchObject(refused)
    await expect(planMigration(pool, { schema })).rejects.toMatchObject(refused)
    const after = await rows(`select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = '${schema}'`)
    expect(after).toEqual([{ relname: name }])
  })

  it('whose migrations only look like ours is not touched either', async () => {
    const place = await emptyPlace()
    const { pool, schema, quoted, rows } = place
    await rows(`create schema ${quoted}; create table ${quoted}.migrations (version integer, at bigint)`)
    await expect(migrate(pool, { schema })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await rows(`select * from ${quoted}.migrations`)).toEqual([])
  })

  it('may be there without tables of ours, and is shared', async () => {
    const place = await emptyPlace()
    const { pool, schema, quoted, rows } = place
    await rows(`create schema ${quoted}; create table ${quoted}.orders (id integer)`)
    expect(await migrate(pool, { schema })).toMatchObject({ from: 0, to: schemaVersion })
    expect(await relationsIn(place)).toEqual([...tableNames, 'orders'].sort())
  })
})

describe('the number of shards', () => {
  it('is fixed when the schema is made', async () => {
    const { pool, schema } = await emptyPlace()
    await migrate(pool, { schema, shards: 16 })
    expect(await migrate(pool, { schema })).toMatchObject({ shards: 16 })
    expect(await migrate(pool, { schema, shards: 16 })).toMatchObject({ shards: 16 })
    await expect(migrate(pool, { schema, shards: 8 })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('was made with 16 shards') as string,
      details: { found: 16, given: 8 },
    })
    await expect(planMigration(pool, { schema, shards: 8, migrations: newer })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })

  it.each([0, -1, 1.5, 4097, Number.NaN])('is no %d', async (shards) => {
    const { pool, schema } = await emptyPlace()
    await expect(migrate(pool, { schema, shards })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('an older client on a newer schema', () => {
  it('goes on as long as it is admitted, and changes nothing', async () => {
    const place = await emptyPlace()
    const { pool, schema } = place
    await migrate(pool, { schema, migrations: newer })
    expect(await migrate(pool, { schema })).toEqual({ from: newer.length, to: newer.length, shards: 1 })
    expect(await versionsIn(place)).toEqual(versions(newer.length))
  })

  it('is refused once the schema wants a newer one', async () => {
    const place = await emptyPlace()
    const { pool, schema } = place
    await migrate(pool, { schema, migrations: newer })
    await raiseMinClient(place, newer.length)
    const refused = { code: 'SCHEMA_TOO_NEW', details: { needed: newer.length, known: schemaVersion } }
    await expect(migrate(pool, { schema })).rejects.toMatchObject(refused)
    await expect(planMigration(pool, { schema })).rejects.toMatchObject(refused)
    expect(await migrate(pool, { schema, migrations: newer })).toMatchObject({ to: newer.length })
  })

  it('is refused with the versions', () => {
    expect(() => assertClient('1')).not.toThrow()
    expect(() => assertClient(schemaVersion + 1)).toThrow(
      `knows version ${schemaVersion + 1} of it, and this one knows`,
    )
  })
})
