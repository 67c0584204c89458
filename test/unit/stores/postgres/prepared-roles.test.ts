// Schemas for views, and roles, that another role has prepared: they get no rights by their names.

import { describe, expect, it, onTestFinished } from 'vitest'
import { installPostgres } from '../../../../src/stores/postgres/schema/install.ts'
import { dropRoles, prepared } from './prepared.ts'

describe('a schema for views that another role prepared', () => {
  it('is refused, and no view of theirs is given to the migrator or shown to anybody', async () => {
    const { schema, pool, eve, asEve, rows } = await prepared()
    const url = pool.options.connectionString as string
    const place = `${schema}_queues`
    await installPostgres({ url, schema })
    await asEve(`create schema ${place}`, `create view ${place}.mine as select 1 as one`)
    const refused = { code: 'INVALID_OPTION', details: { owner: eve, schema: place } }
    for (const isDryRun of [true, false]) {
      await expect(installPostgres({ url, schema, views: ['queues'], isDryRun })).rejects.toMatchObject(refused)
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
    const [place, roles] = [`${schema}_queues`, `r_${schema.slice(-20)}`]
    onTestFinished(() => dropRoles(rows, roles))
    await installPostgres({ url, schema, views: ['queues'] })
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
    await installPostgres({ url, schema, views: ['queues'] })
  })
})

describe('a role that an operator prepared', () => {
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
