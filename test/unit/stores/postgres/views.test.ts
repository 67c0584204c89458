// Views with the names of other designs: what holds for all of them.

import { describe, expect, it, onTestFinished } from 'vitest'
import { quoteSchema } from '../../../../src/stores/postgres/schema/schema-name.ts'
import { installViews, parseViews, viewNames, viewSchema } from '../../../../src/stores/postgres/views.ts'
import { migratedPlace } from './database.ts'
import { addEntries, addRun, idOf, installed, type EntryRow } from './views/place.ts'

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

  it.each(viewNames)('of %s show a role that may look at them no payload, and no set shows a token', async (name) => {
    const place = await installed(name)
    const { rows, quoted } = place
    const canary = (kind: string): string => `"canary of ${kind}"`
    const entries: readonly EntryRow[] = [
      ['started', null, { maxAttempts: 3 }, canary('started')],
      ['step-succeeded', 'a', { ms: 1 }, canary('step-succeeded')],
      ['step-failed', 'b', { ms: 1 }, canary('step-failed')],
      ['issued', 'token', null, '"the secret of a completion token"'],
      ['recorded', 'now', null, canary('recorded')],
      ['event', 'Paid', null, canary('event')],
      ['effect', 'mail', null, canary('effect')],
      ['attempt-failed', 'mail', { attempt: 1 }, canary('attempt-failed')],
      ['effect-failed', 'mail', null, canary('effect-failed')],
      ['timer', 'later', { at: 5000 }, canary('timer')],
      ['logged', 'log', null, canary('logged')],
    ]
    for (const [index, status] of ['waiting', 'succeeded', 'failed'].entries()) {
      await addRun(place, index, { status, more: { metadata: canary('metadata') } })
      const last = status === 'waiting' ? [] : [[status, null, null, canary(status)] as EntryRow]
      await addEntries(place, index, [...entries, ...last])
    }
    await rows(`insert into ${quoted}.messages (shard, run_id, position, id, name, data, at, outcome)
      values (0, '${idOf(0)}', 1, 'm', 'word', '${canary('message')}', 1, 'queued')`)
    const seen = async (schema: string): Promise<string> => {
      const found = await rows(`select viewname as name from pg_views where schemaname = '${schema}'`)
      const read = found.map(({ name: view }) => rows(`select * from ${quoteSchema(schema)}.${String(view)}`))
      return JSON.stringify(await Promise.all(read))
    }
    const [plain, all] = [await seen(place.schema.replace(/_payloads$/, '')), await seen(place.schema)]
    expect(plain).toContain(idOf(0))
    expect(plain).not.toContain('canary')
    expect(all).toContain('canary')
    expect(plain + all).not.toContain('the secret of a completion token')
    expect(all).not.toContain('canary of metadata')
  })

  it('give nobody a right: who may look at one and not at the tables is refused', async () => {
    const { schema, rows, view } = await installed('instances', 'plain')
    const role = quoteSchema(`${schema}_dashboard`)
    await rows(`create role ${role}; grant usage on schema ${view} to ${role};
      grant select on all tables in schema ${view} to ${role}`)
    onTestFinished(async () => void (await rows(`drop owned by ${role}; drop role ${role}`)))
    const asDashboard = rows(`set local role ${role}; select * from ${view}.workflow_instances`)
    await expect(asDashboard).rejects.toMatchObject({ code: '42501' })
    const found = await rows(`select reloptions as options from pg_class where relnamespace = '${view}'::regnamespace`)
    expect(found.map(({ options }) => options)).toEqual(found.map(() => ['security_invoker=true']))
  })

  it('may be made again, and all are dropped when none is wanted', async () => {
    const { pool, schema, rows } = await migratedPlace()
    const count = async (): Promise<unknown> =>
      (await rows(`select count(*)::int as count from pg_views where schemaname like '${schema}\\_%'`))[0]?.['count']
    await installViews(pool, { schema, views: viewNames, payloads: true })
    const all = await count()
    await installViews(pool, { schema, views: viewNames, payloads: true })
    expect(await count()).toBe(all)
    await installViews(pool, { schema, views: [] })
    expect([all, await count()]).toEqual([38, 0])
  })

  it('do not take the place of a table of another role, and then none is made', async () => {
    const { pool, schema, rows } = await migratedPlace()
    const place = quoteSchema(viewSchema(schema, 'instances'))
    await rows(`create schema ${place}; create table ${place}.timers (mine integer)`)
    await expect(installViews(pool, { schema, views: ['queues', 'instances'] })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('"timers" is not a view') as string,
    })
    expect(await rows(`select 1 from pg_views where schemaname like '${schema}%'`)).toEqual([])
    expect(await rows(`select * from ${place}.timers`)).toEqual([])
  })

  it('that are misspelt are refused, with what was meant', () => {
    expect(parseViews('instances, queues')).toEqual(['instances', 'queues'])
    expect(parseViews('none')).toEqual([])
    expect(() => parseViews('instances,qeues')).toThrow('There are no views named "qeues". Did you mean "queues"?')
    expect(() => parseViews('none,queues')).toThrow('There are no views named "none"')
  })
})
