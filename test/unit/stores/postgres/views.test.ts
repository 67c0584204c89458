// Views with the names of other designs: what holds for all of them.

import { describe, expect, it } from 'vitest'
import { quoteSchema } from '../../../../src/stores/postgres/schema-name.ts'
import { installViews, parseViews, viewNames, viewSchema } from '../../../../src/stores/postgres/views.ts'
import { migratedPlace } from './database.ts'
import { installed } from './views/place.ts'

describe('views', () => {
  it.each(viewNames)('of %s can only be read, and each says where it differs', async (name) => {
    const { schema, rows, view } = await installed(name)
    const found = await rows(`select c.relname as name, obj_description(c.oid) as comment from pg_class c
      join pg_namespace n on n.oid = c.relnamespace where n.nspname = '${schema}' and c.relkind = 'v'`)
    expect(found.length).toBeGreaterThanOrEqual(3)
    for (const { name: one, comment } of found) {
      expect(comment).toMatch(/\.$/)
      await expect(rows(`delete from ${view}.${String(one)}`)).rejects.toMatchObject({ code: '55000' })
    }
  })

  it('may be made again, and all are dropped when none is wanted', async () => {
    const { pool, schema, rows } = await migratedPlace()
    const count = async (): Promise<unknown> =>
      (await rows(`select count(*)::int as count from pg_views where schemaname like '${schema}\\_%'`))[0]?.['count']
    await installViews(pool, schema, viewNames)
    const all = await count()
    await installViews(pool, schema, viewNames)
    expect(await count()).toBe(all)
    await installViews(pool, schema, [])
    expect([all, await count()]).toEqual([19, 0])
  })

  it('do not take the place of a table of somebody else, and then none is made', async () => {
    const { pool, schema, rows } = await migratedPlace()
    const place = quoteSchema(viewSchema(schema, 'ironflow'))
    await rows(`create schema ${place}; create table ${place}.timers (mine integer)`)
    await expect(installViews(pool, schema, ['pgqrs', 'ironflow'])).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('"timers" is not a view') as string,
    })
    expect(await rows(`select 1 from pg_views where schemaname like '${schema}%'`)).toEqual([])
    expect(await rows(`select * from ${place}.timers`)).toEqual([])
  })

  it('that are misspelt are refused, with what was meant', () => {
    expect(parseViews('ironflow, pgqrs')).toEqual(['ironflow', 'pgqrs'])
    expect(parseViews('none')).toEqual([])
    expect(() => parseViews('ironflow,pgrs')).toThrow('There are no views named "pgrs". Did you mean "pgqrs"?')
    expect(() => parseViews('none,pgqrs')).toThrow('There are no views named "none"')
  })
})
