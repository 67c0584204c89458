// A schema that another role has prepared: what they attached to it must not run with the rights of who migrates.

import { describe, expect, it, onTestFinished } from 'vitest'
import { schemaVersion } from '../../../../../src/stores/postgres/schema/client-version.ts'
import { installPostgres } from '../../../../../src/stores/postgres/schema/install.ts'
import { migrate, planMigration } from '../../../../../src/stores/postgres/schema/migrate.ts'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { emptyPlace, openPool } from '../database.ts'
import { dropRoles, prepared, type Prepared } from '../prepared.ts'

const begun = (schema: string, check: string): readonly string[] => [
  `create schema ${schema}`,
  `create table ${schema}.migrations (version integer primary key, at bigint not null ${check})`,
  `insert into ${schema}.migrations values (0, 0)`,
]

async function expectRefused({ pool, schema, eve, caught }: Prepared): Promise<void> {
  const refused = {
    code: 'INVALID_OPTION',
    message: expect.stringContaining(`Connect as "${eve}"`) as string,
    details: expect.objectContaining({ owner: eve }) as object,
  }
  await expect(migrate(pool, { schema })).rejects.toMatchObject(refused)
  await expect(planMigration(pool, { schema })).rejects.toMatchObject(refused)
  expect(await caught()).toBe(0)
}

describe('a schema that another role prepared', () => {
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

  it('is not read where a view has the name of a table: what it calls would run as the role that opens the store', async () => {
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
    expect(await caught()).toBe(0)
  })

  it.each(['a superuser', 'a stranger', 'a superuser with her role'])(
    'is not read before its owner is known, also where %s migrates: to read a view is to run what it calls',
    async (who) => {
      const { admin, schema, asEve, trap, caught, eve, urlOf } = await prepared()
      const seen = `select 99 as version, 0::bigint as at, 0::smallint as shard, 'roles'::text as name, '1'::text as value`
      await asEve(
        `create schema ${schema}`,
        `grant usage on schema ${schema} to public`,
        `create view ${schema}.migrations as ${seen} where ${trap}`,
        `create view ${schema}.settings as ${seen} where ${trap}`,
        `grant select on ${schema}.migrations, ${schema}.settings to public`,
      )
      const urls = {
        'a superuser': async () => admin,
        'a stranger': () => urlOf(`${eve}_bob`),
        'a superuser with her role': async () => `${admin}?options=${encodeURIComponent(`-c role=${eve}`)}`,
      }
      const url = await urls[who as keyof typeof urls]()
      const ways = [{}, { roles: `r_${schema.slice(-20)}` }, { views: ['queues'] }] as const
      const errors: unknown[] = []
      for (const lockPolicy of ways) {
        for (const isDryRun of [true, false]) {
          await installPostgres({ url, schema, ...lockPolicy, isDryRun }).catch((error: unknown) => errors.push(error))
        }
      }
      expect(await caught()).toBe(0)
      expect(errors).toHaveLength(6)
      for (const error of errors) expect(error).toMatchObject({ code: 'INVALID_OPTION', details: { owner: eve } })
    },
  )

  it('is not read where she puts a view after the look at the catalog: what was not there then is not read', async () => {
    const { pool, schema, rows, asEve, trap, caught, eve } = await prepared()
    await rows(`create schema ${schema}; grant create, usage on schema ${schema} to ${eve}`)
    const seen = `select 0 as version, 0::smallint as shard, 'roles'::text as name, '1'::text as value where ${trap}`
    const made: unknown[] = []
    const racing = {
      end: () => Promise.resolve(),
      connect: async () => {
        const client = await pool.connect()
        return {
          release: () => client.release(),
          query: async (config: { readonly text: string; readonly values?: unknown[] }) => {
            const found = await client.query(config)
            const isLook = config.text.includes('pg_trigger') && made.length === 0
            if (isLook) {
              made.push(true)
              for (const name of ['migrations', 'settings']) {
                await asEve(`create view ${schema}.${name} as ${seen}`, `grant select on ${schema}.${name} to public`)
              }
            }
            return found
          },
        }
      },
    }
    await expect(migrate(racing as never, { schema, isAdministered: true })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    expect([made, await caught()]).toEqual([[true], 0])
  })

  it('runs no condition of a trigger, and nothing of a table that refers to ours', async () => {
    const place = await prepared()
    const { pool, schema, rows, eve, asEve, trap, caught } = place
    await migrate(pool, { schema })
    const [mine, roles] = [`${schema}_lair.mine`, `${schema}.settings`]
    await rows(`grant usage on schema ${schema} to ${eve}; grant trigger, references on ${roles} to ${eve}`)
    await asEve(
      `create trigger quiet before insert on ${roles} for each row when (${trap})
        execute function suppress_redundant_updates_trigger()`,
    )
    const migrated = (): Promise<unknown> => migrate(pool, { schema, isAdministered: true })
    await expect(migrated()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('the trigger "quiet" has a WHEN') as string,
    })
    await rows(`drop trigger quiet on ${roles}`)
    await asEve(
      `create table ${mine} (shard smallint, name text, foreign key (shard, name) references ${roles} on delete cascade)`,
    )
    await expect(migrated()).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { owner: eve } })
    await asEve(`drop table ${mine}`)
    expect(await migrated()).toMatchObject({ from: schemaVersion })
    expect(await caught()).toBe(0)
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

describe('a schema of another owner that is up to date', () => {
  const attached = [
    ['check', (trap: string, schema: string) => `alter table ${schema}.settings add check (${trap}) not valid`],
    [
      'index',
      (trap: string, schema: string) => `create index on ${schema}.settings (${trap.replace('trap()', 'still()')})`,
    ],
    [
      'policy',
      (trap: string, schema: string) =>
        `create policy p on ${schema}.settings using (${trap}); alter table ${schema}.settings enable row level security;
         alter table ${schema}.settings force row level security`,
    ],
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
      const { schema, admin, url, asEve, eve, trap, caught, rows } = await prepared()
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
          installPostgres({ url: admin, schema, views: ['queues'], roles: eve, isDryRun }),
        ).rejects.toMatchObject(refused)
        await expect(installPostgres({ url: admin, schema, isDryRun })).rejects.toMatchObject(refused)
      }
      expect(await caught()).toBe(0)
      expect(await rows(`select 1 from pg_roles where rolname like '${roles}%' or rolname like '${eve}\\_%'`)).toEqual(
        [],
      )
    },
  )
})

describe('a schema whose owner is named', () => {
  it('is refused to a superuser: what the owner attached gives the role back, and has all rights', async () => {
    const { pool, admin, schema, eve, asEve, trap, caught } = await prepared()
    await asEve(...begun(schema, `, check (${trap})`))
    const refused = { code: 'INVALID_OPTION', details: { owner: eve } }
    await expect(planMigration(pool, { schema, owner: eve })).rejects.toMatchObject(refused)
    await expect(migrate(pool, { schema, owner: eve })).rejects.toMatchObject(refused)
    for (const isDryRun of [true, false]) {
      await expect(installPostgres({ url: admin, schema, owner: eve, isDryRun })).rejects.toMatchObject(refused)
    }
    expect(await caught()).toBe(0)
  })

  it('is refused to who can become a superuser', async () => {
    const { schema, eve, asEve, trap, caught, rows, urlOf } = await prepared()
    const [admin] = await rows('select current_user::text as name')
    const bob = `${eve}_bob`
    const url = await urlOf(bob)
    await rows(`grant ${String(admin?.['name'])}, ${eve} to ${bob}`)
    await asEve(...begun(schema, `, check (${trap})`))
    const refused = { code: 'INVALID_OPTION', details: { owner: eve } }
    for (const owner of [eve, undefined]) {
      await expect(installPostgres({ url, schema, owner })).rejects.toMatchObject(refused)
    }
    expect(await caught()).toBe(0)
  })

  it('is migrated as that role by a member of it, and by the owner', async () => {
    const { schema, eve, asEve, rows, urlOf, url } = await prepared()
    await asEve(...begun(schema, ''))
    const bob = `${eve}_bob`
    const pool = openPool(await urlOf(bob))
    await rows(`alter role ${bob} noinherit; grant ${eve} to ${bob}`)
    await expect(migrate(pool, { schema })).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { owner: eve } })
    const plan = await planMigration(pool, { schema, owner: eve })
    const sent: string[] = []
    const onSql = (sql: string): void => void sent.push(sql)
    expect(await migrate(pool, { schema, owner: eve, onSql })).toMatchObject({ from: 0, to: schemaVersion })
    expect(sent).toEqual(plan.statements)
    const owners = await rows(`select distinct tableowner as owner from pg_tables where schemaname = '${schema}'`)
    expect(owners).toEqual([{ owner: eve }])
    expect(await installPostgres({ url, schema, owner: eve })).toMatchObject({ from: schemaVersion, roles: null })
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

describe('a schema of a migrator', () => {
  it('is brought up to date by a superuser as long as nobody else can act as it, and by its members', async () => {
    const { schema, admin, rows, eve, caught, trap, asEve, urlOf } = await prepared()
    const roles = `r_${schema.slice(-20)}`
    onTestFinished(() => dropRoles(rows, roles))
    await installPostgres({ url: admin, schema, roles })
    // Without what the last migration made.
    const outdated = (): Promise<unknown> =>
      rows(`delete from ${schema}.migrations where version = ${schemaVersion};
        drop table ${schema}.projections`)
    await outdated()
    expect(await installPostgres({ url: admin, schema })).toMatchObject({ from: schemaVersion - 1, roles })
    // From here on another role may have attached something to it.
    await rows(`grant ${roles}_migrator to ${eve}`)
    await asEve(`create policy p on ${schema}.settings using (${trap})`)
    await asEve(`alter table ${schema}.settings enable row level security, force row level security`)
    const refused = { code: 'INVALID_OPTION', details: { owner: `${roles}_migrator` } }
    for (const lockPolicy of [{}, { roles }, { owner: `${roles}_migrator` }]) {
      await expect(installPostgres({ url: admin, schema, ...lockPolicy })).rejects.toMatchObject(refused)
    }
    expect(await caught()).toBe(0)
    await asEve(`alter table ${schema}.settings disable row level security`)
    const deploy = await urlOf(`${eve}_deploy`)
    // Also one to whom its rights do not come by themselves.
    await rows(`alter role ${eve}_deploy noinherit; grant ${roles}_migrator to ${eve}_deploy`)
    await outdated()
    expect(await installPostgres({ url: deploy, schema })).toMatchObject({ from: schemaVersion - 1, roles })
  })

  it('is nobody because of its name: a login that is called so is refused', async () => {
    const { schema, admin, eve, urlOf, rows, trap, caught } = await prepared()
    const login = `${eve}_migrator`
    const url = await urlOf(login)
    await installPostgres({ url, schema })
    const mallory = openPool(url)
    await mallory.query(`insert into ${schema}.settings (shard, name, value) values (0, 'roles', '${eve}')`)
    await mallory.query(`create index on ${schema}.settings (${trap.replace('trap()', 'still()')})`)
    await rows(`alter sequence ${trap.replace('trap()', 'caught')} restart`)
    const refused = { code: 'INVALID_OPTION', details: { owner: login } }
    for (const lockPolicy of [{}, { roles: eve }, { owner: login }]) {
      await expect(installPostgres({ url: admin, schema, ...lockPolicy })).rejects.toMatchObject(refused)
    }
    expect(await caught()).toBe(0)
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

  it('may be one that a superuser made for a role that may create in it', async () => {
    const { schema, eve, url, rows } = await prepared()
    await rows(`create schema ${schema}; grant create, usage on schema ${schema} to ${eve}`)
    expect(await migrate(openPool(url), { schema })).toMatchObject({ from: 0, to: schemaVersion })
  })
})
