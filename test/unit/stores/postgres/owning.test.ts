// A schema that somebody else has prepared: what they attached to it must not run with the rights of who migrates.

import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { schemaVersion } from '../../../../src/stores/postgres/client-version.ts'
import { installPostgres } from '../../../../src/stores/postgres/installing.ts'
import { migrate, planMigration } from '../../../../src/stores/postgres/migrating.ts'
import { roleNames } from '../../../../src/stores/postgres/roles.ts'
import { openPostgresStore } from '../../../../src/stores/postgres/index.ts'
import { emptyPlace, openPool, type Place } from './database.ts'

interface Prepared extends Place {
  /** Who has prepared it. */
  readonly eve: string
  /** A function of hers, which notes whose rights it has. */
  readonly trap: string
  /** Executes something as her. */
  readonly asEve: (...statements: readonly string[]) => Promise<void>
  /** With whose rights the trap ran. */
  readonly caught: () => Promise<readonly unknown[]>
  /** The address of the same database for her. */
  readonly url: string
}

/** A role of her own, who may create schemas, and a trap beside the schema that we shall migrate. */
async function prepared(): Promise<Prepared> {
  const place = await emptyPlace()
  const { rows, schema, pool } = place
  const eve = `eve_${randomBytes(4).toString('hex')}`
  const lair = `${schema}_lair`
  const [row] = await rows('select current_database() as name')
  await rows(`create role ${eve} login password 'eve'; grant create on database ${String(row?.['name'])} to ${eve}`)
  onTestFinished(async () => void (await rows(`drop owned by ${eve} cascade; drop role ${eve}`)))
  const asEve = async (...statements: readonly string[]): Promise<void> => {
    const client = new Client({ connectionString: pool.options.connectionString })
    await client.connect()
    await client.query(`set role ${eve}`)
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  await asEve(
    `create schema ${lair}`,
    `grant usage on schema ${lair} to public`,
    `create table ${lair}.caught (who text)`,
    `create function ${lair}.trap() returns boolean language plpgsql volatile as
      $$ begin insert into ${lair}.caught values (current_user); return true; end $$`,
    // Postgres calls it when it plans a statement.
    `create function ${lair}.still() returns boolean language plpgsql immutable as
      $$ begin perform ${lair}.trap(); return true; end $$`,
    `create function ${lair}.spring() returns trigger language plpgsql volatile as
      $$ begin insert into ${lair}.caught values (current_user); return new; end $$`,
  )
  const caught = async (): Promise<readonly unknown[]> => {
    const found = await rows(`select distinct who from ${lair}.caught`)
    return found.map(({ who }) => who).filter((who) => who !== eve)
  }
  const url = new URL(pool.options.connectionString as string)
  url.username = eve
  url.password = 'eve'
  return { ...place, eve, trap: `${lair}.trap()`, asEve, caught, url: url.href }
}

const begun = (schema: string, check: string): readonly string[] => [
  `create schema ${schema}`,
  `create table ${schema}.migrations (version integer primary key, at bigint not null ${check})`,
  `insert into ${schema}.migrations values (0, 0)`,
]

async function expectRefused({ pool, schema, eve, caught }: Prepared): Promise<void> {
  const refused = {
    code: 'INVALID_OPTION',
    message: expect.stringContaining(`holdfast migrate --owner ${eve}`) as string,
    details: expect.objectContaining({ owner: eve }) as object,
  }
  await expect(migrate(pool, { schema })).rejects.toMatchObject(refused)
  await expect(planMigration(pool, { schema })).rejects.toMatchObject(refused)
  expect(await caught()).toEqual([])
}

describe('a schema that somebody else prepared', () => {
  it('runs no CHECK of theirs with the rights of who migrates', async () => {
    const place = await prepared()
    await place.asEve(...begun(place.schema, `, check (${place.trap})`))
    await expectRefused(place)
  })

  it('runs no DEFAULT and no index expression of theirs either', async () => {
    const place = await prepared()
    await place.asEve(...begun(place.schema, `, more boolean default ${place.trap}`))
    await expectRefused(place)
  })

  it('is refused when nothing stands in it yet: its owner can put something there at any time', async () => {
    const place = await prepared()
    await place.asEve(`create schema ${place.schema}`)
    await expectRefused(place)
  })

  it('is refused when only a table in a schema of ours is theirs', async () => {
    const place = await prepared()
    const { schema, rows, eve, asEve, trap } = place
    await rows(`create schema ${schema}; grant create, usage on schema ${schema} to ${eve}`)
    await asEve(...begun(schema, `, check (${trap})`).slice(1))
    await expectRefused(place)
  })

  it('is not read where a view has the name of a table: what it calls would run as whoever opens the store', async () => {
    const { pool, schema, asEve, trap, caught } = await prepared()
    const seen = `select 99 as version, 0::bigint as at, 0::smallint as shard, 'x'::text as name, '1'::text as value where ${trap}`
    await asEve(
      `create schema ${schema}`,
      `create view ${schema}.migrations as ${seen}`,
      `create view ${schema}.settings as ${seen}`,
    )
    const refused = { code: 'INVALID_OPTION' }
    await expect(migrate(pool, { schema })).rejects.toMatchObject(refused)
    await expect(planMigration(pool, { schema })).rejects.toMatchObject(refused)
    await expect(openPostgresStore({ pool, schema, listen: false })).rejects.toMatchObject(refused)
    expect(await caught()).toEqual([])
  })

  it('runs no trigger whose function is theirs, also on tables that are ours', async () => {
    const place = await prepared()
    const { pool, schema, rows, eve, asEve } = place
    await migrate(pool, { schema })
    await rows(`grant usage on schema ${schema} to ${eve}; grant trigger on ${schema}.migrations to ${eve}`)
    await asEve(
      `create trigger sprung before insert on ${schema}.migrations for each row
        execute function ${schema}_lair.spring()`,
    )
    await rows(`alter table ${schema}.migrations disable trigger sprung`)
    await rows(`delete from ${schema}.migrations where version = ${schemaVersion}`)
    await rows(`alter table ${schema}.migrations enable trigger sprung`)
    await expectRefused(place)
  })
})

describe('a schema of somebody else that is up to date', () => {
  const attached = [
    ['check', (trap: string, schema: string) => `alter table ${schema}.settings add check (${trap}) not valid`],
    [
      'index',
      (trap: string, schema: string) => `create index on ${schema}.settings (${trap.replace('trap()', 'still()')})`,
    ],
    ['policy', (trap: string, schema: string) => `create policy p on ${schema}.settings using (${trap})`],
    [
      'trigger',
      (trap: string, schema: string) =>
        `create trigger sprung before insert or update on ${schema}.settings for each row
         execute function ${trap.replace('trap()', 'spring()')}`,
    ],
    [
      'rule',
      (trap: string, schema: string) => `create rule r as on insert to ${schema}.settings do also select ${trap}`,
    ],
  ] as const

  it.each(attached)(
    'runs no %s of theirs when a superuser makes its roles and views, or looks at it',
    async (_, attach) => {
      const { schema, pool, url, asEve, eve, trap, caught, rows } = await prepared()
      const admin = pool.options.connectionString as string
      await installPostgres({ url, schema })
      await asEve(`insert into ${schema}.settings (shard, name, value) values (0, 'roles', '${eve}')`)
      await asEve(attach(trap, schema))
      const refused = { code: 'INVALID_OPTION', details: { owner: eve } }
      const roles = `r_${schema.slice(-20)}`
      for (const isDryRun of [true, false]) {
        await expect(installPostgres({ url: admin, schema, roles, isDryRun })).rejects.toMatchObject({
          code: 'INVALID_OPTION',
        })
        await expect(
          installPostgres({ url: admin, schema, views: ['pgqrs'], roles: eve, isDryRun }),
        ).rejects.toMatchObject(refused)
        await expect(installPostgres({ url: admin, schema, isDryRun })).rejects.toMatchObject(refused)
      }
      expect(await caught()).toEqual([])
      expect(await rows(`select 1 from pg_roles where rolname like '${roles}%' or rolname like '${eve}\\_%'`)).toEqual(
        [],
      )
    },
  )
})

describe('a schema for views that somebody else prepared', () => {
  it('is refused, and no view of theirs is given to the migrator or shown to anybody', async () => {
    const { schema, pool, eve, asEve, rows } = await prepared()
    const url = pool.options.connectionString as string
    const place = `${schema}_pgqrs`
    await installPostgres({ url, schema })
    await asEve(`create schema ${place}`, `create view ${place}.mine as select 1 as one`)
    const refused = { code: 'INVALID_OPTION', details: { owner: eve, schema: place } }
    for (const isDryRun of [true, false]) {
      await expect(installPostgres({ url, schema, views: ['pgqrs'], isDryRun })).rejects.toMatchObject(refused)
      await expect(installPostgres({ url, schema, roles: `r_${schema}`, isDryRun })).rejects.toMatchObject(refused)
    }
    const views = await rows(
      `select viewname as name, viewowner as owner from pg_views where schemaname = '${place}' order by 1`,
    )
    expect(views).toEqual([{ name: 'mine', owner: eve }])
  })

  it('that is ours keeps what others have put there: roles get only the views that we make', async () => {
    const { schema, pool, eve, asEve, rows } = await prepared()
    const url = pool.options.connectionString as string
    const [place, roles] = [`${schema}_pgqrs`, `r_${schema.slice(-20)}`]
    onTestFinished(() => dropRoles(rows, roles))
    await installPostgres({ url, schema, views: ['pgqrs'] })
    await rows(`grant create, usage on schema ${place} to ${eve}`)
    await asEve(`create view ${place}.mine as select 1 as one`)
    await installPostgres({ url, schema, roles })
    const [mine] = await rows(
      `select viewowner as owner from pg_views where schemaname = '${place}' and viewname = 'mine'`,
    )
    expect(mine).toEqual({ owner: eve })
    const granted = await rows(
      `select viewname as name from pg_views where schemaname = '${place}'
        and has_table_privilege('${roles}_viewer', schemaname || '.' || viewname, 'select')`,
    )
    expect(granted.length).toBeGreaterThan(0)
    expect(granted.map(({ name }) => name)).not.toContain('mine')
    await installPostgres({ url, schema, views: ['pgqrs'] })
  })
})

async function dropRoles(rows: Place['rows'], prefix: string): Promise<void> {
  for (const name of Object.values(roleNames(prefix))) {
    const [found] = await rows(`select 1 as one from pg_roles where rolname = '${name}'`)
    if (found !== undefined) await rows(`drop owned by ${name} cascade; drop role ${name}`)
  }
}

describe('a role that somebody prepared', () => {
  it.each([
    ['login password $$x$$', 'it can log in'],
    ['nologin', 'Holdfast did not make it'],
  ])('%s gets no rights by its name, unless it is adopted', async (how, why) => {
    const { schema, pool, rows } = await prepared()
    const url = pool.options.connectionString as string
    const roles = `r_${schema.slice(-20)}`
    onTestFinished(() => dropRoles(rows, roles))
    for (const kind of ['worker', 'migrator']) await rows(`create role ${roles}_${kind} ${how}`)
    const refused = { code: 'INVALID_OPTION', message: expect.stringContaining(why) as string }
    await expect(installPostgres({ url, schema, roles, isDryRun: true })).rejects.toMatchObject(refused)
    await expect(installPostgres({ url, schema, roles })).rejects.toMatchObject(refused)
    expect(await rows(`select 1 from pg_roles where rolname = '${roles}_viewer'`)).toEqual([])
    const [right] = await rows(`select has_schema_privilege('${roles}_worker', '${schema}', 'usage') as may`)
    expect(right).toEqual({ may: false })
    await installPostgres({ url, schema, roles, adopt: true })
    const [adopted] = await rows(`select has_schema_privilege('${roles}_worker', '${schema}', 'usage') as may`)
    expect(adopted).toEqual({ may: true })
  })

  it('for a schema that has roles is found out by who can give it to others, or log in', async () => {
    const { schema, pool, rows, eve } = await prepared()
    const url = pool.options.connectionString as string
    const roles = `r_${schema.slice(-20)}`
    onTestFinished(() => dropRoles(rows, roles))
    await installPostgres({ url, schema, roles })
    // Again and again, also without a word of roles.
    await installPostgres({ url, schema, roles })
    expect(await installPostgres({ url, schema })).toMatchObject({ roles })
    await rows(`grant ${roles}_worker to ${eve}`)
    await installPostgres({ url, schema, roles })
    await rows(`grant ${roles}_worker to ${eve} with admin option`)
    const refused = { code: 'INVALID_OPTION', details: { role: `${roles}_worker`, admins: [eve] } }
    await expect(installPostgres({ url, schema, roles })).rejects.toMatchObject(refused)
    await rows(`revoke ${roles}_worker from ${eve}`)
    await rows(`alter role ${roles}_viewer login`)
    await expect(installPostgres({ url, schema, roles })).rejects.toMatchObject({
      details: { role: `${roles}_viewer` },
    })
    await rows(`alter role ${roles}_viewer nologin`)
    await installPostgres({ url, schema, roles })
  })

  it('in another schema of the server has roles of that name: they are adopted by who says so', async () => {
    const [one, two] = [await prepared(), await prepared()]
    const url = one.pool.options.connectionString as string
    const roles = `r_${one.schema.slice(-20)}`
    onTestFinished(() => dropRoles(one.rows, roles))
    await installPostgres({ url, schema: one.schema, roles })
    await expect(installPostgres({ url, schema: two.schema, roles })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await installPostgres({ url, schema: two.schema, roles, adopt: true })
    await installPostgres({ url, schema: two.schema, roles })
  })
})

describe('a schema whose owner is named', () => {
  it('is migrated with the rights of its owner alone, and what they attached runs as they', async () => {
    const place = await prepared()
    const { pool, schema, eve, asEve, trap, caught, rows } = place
    await asEve(...begun(schema, `, check (${trap})`))
    const plan = await planMigration(pool, { schema, owner: eve })
    const sent: string[] = []
    const onSql = (sql: string): void => void sent.push(sql)
    expect(await migrate(pool, { schema, owner: eve, onSql })).toMatchObject({ from: 0, to: schemaVersion })
    expect(sent).toEqual(plan.statements)
    expect(await caught()).toEqual([])
    const owners = await rows(`select distinct tableowner as owner from pg_tables where schemaname = '${schema}'`)
    expect(owners).toEqual([{ owner: eve }])
  })

  it('is refused when that is not who owns it', async () => {
    const place = await prepared()
    const { pool, schema, asEve } = place
    await asEve(`create schema ${schema}`)
    await expect(migrate(pool, { schema, owner: 'pg_monitor' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each(['none', 'NONE', ''])('has a name: "%s" would mean all rights', async (owner) => {
    const { pool, schema } = await emptyPlace()
    await expect(migrate(pool, { schema, owner })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('a schema of a role that one is a member of, or of a superuser', () => {
  it('is migrated as any other', async () => {
    const { pool, schema, eve, url, rows, asEve } = await prepared()
    const group = `${eve}_group`
    await rows(`create role ${group}; grant ${group} to ${eve}; create schema ${schema} authorization ${group}`)
    const own = openPool(url)
    expect(await migrate(own, { schema })).toMatchObject({ from: 0, to: schemaVersion })
    // A superuser has the rights of every role: of that nothing follows.
    await rows(`delete from ${schema}.migrations where version = ${schemaVersion}`)
    await expect(migrate(pool, { schema })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await asEve('select 1')
    await rows(`reassign owned by ${group} to ${eve}; drop role ${group}`)
  })

  it('may be one that a superuser made for somebody who may create in it', async () => {
    const { schema, eve, url, rows } = await prepared()
    await rows(`create schema ${schema}; grant create, usage on schema ${schema} to ${eve}`)
    expect(await migrate(openPool(url), { schema })).toMatchObject({ from: 0, to: schemaVersion })
  })
})
