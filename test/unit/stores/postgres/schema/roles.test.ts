// Least privilege on Postgres: what a login can do with the rights of each role, and what is refused.

import { Client, Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, topic, workflow, type Holdfast } from 'holdfast'
import { readCompletionToken } from '../../../../../src/core/completion/completion-token.ts'
import { installPostgres } from '../../../../../src/stores/postgres/schema/install.ts'
import {
  installRoles,
  planRoles,
  roleNames,
  viewedColumns,
  type RoleKind,
} from '../../../../../src/stores/postgres/schema/roles.ts'
import { tableNames } from '../../../../../src/stores/postgres/table-names.ts'
import { viewNames, viewSchema } from '../../../../../src/stores/postgres/views.ts'
import { keepLines } from '../../../../holdfast/open.ts'
import { createRoles } from '../../../../support/postgres-roles.ts'
import { freshSchema } from '../../../../support/postgres-shared.ts'
import { migratedPlace } from '../database.ts'

const handed: string[] = []
const asking = workflow('asking', async (ctx, name: string) => {
  const answer = ctx.token<string>()
  await ctx.step('greet', () => `canary of a result for ${name}`)
  handed.push(answer.token)
  return `${await answer}, ${String(await ctx.receive('word'))}`
})

const news = topic<string>('news')
const reading = workflow('reading', (ctx) => ctx.receive(news))

async function roled() {
  const { url, schema } = await freshSchema()
  await installPostgres({ url, schema, views: viewNames, payloads: true })
  const roles = await createRoles(url, schema)
  onTestFinished(() => roles.drop())
  await roles.grant(schema)
  const open = async (kind: RoleKind): Promise<Holdfast> => {
    const store = `${roles.urlOf(kind)}?schema=${schema}`
    const holdfast = await createHoldfast({ store, workflows: [asking, reading], migrate: false, logger: keepLines() })
    onTestFinished(() => holdfast.close())
    return holdfast
  }
  const as = async (kind: RoleKind, sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const pool = new Pool({ connectionString: roles.urlOf(kind), max: 1 })
    try {
      return (await pool.query(sql)).rows as never
    } finally {
      await pool.end()
    }
  }
  return { url, schema, roles, open, as }
}

describe('the roles of a schema', () => {
  it('a worker performs what a starter starts, sends to and completes, and a starter performs nothing', async () => {
    const { open, as, schema } = await roled()
    const worker = await open('worker')
    await worker.work()
    const starter = await open('starter')
    const run = await starter.start(asking, 'Ada', { key: 'ada', tags: ['vip'] })
    await expect.poll(() => handed.length).toBe(1)
    expect(await starter.complete(handed[0] ?? '', 'yes')).toMatchObject({ runId: run.id })
    await run.signal('word', 'hello')
    expect(await run.result()).toBe('yes, hello')
    const second = await starter.start(asking, 'Eve')
    expect(await starter.cancel(second)).toMatchObject({ outcome: expect.any(String) as string })
    expect((await starter.find({})).runs).toHaveLength(2)
    await expect(starter.work()).rejects.toMatchObject({ code: 'STORE_REFUSED' })
    for (const sql of [`select token_key from ${schema}.secrets`, `update ${schema}.journal set data = ''`]) {
      await expect(as('starter', sql)).rejects.toMatchObject({ code: '42501' })
    }
  })

  it.each(['worker', 'starter'] as const)(
    'a %s broadcasts past a subscriber that a stranger has locked, which gets it from the worker later',
    async (kind) => {
      const { open, schema, url } = await roled()
      const worker = await open('worker')
      await worker.work()
      const runs = [await worker.start(reading), await worker.start(reading)] as const
      await expect.poll(async () => (await worker.count({ status: 'waiting' })).count).toBe(2)
      const stranger = new Client({ connectionString: url })
      await stranger.connect()
      onTestFinished(() => stranger.end())
      await stranger.query('begin')
      await stranger.query(`select 1 from ${schema}.runs where id = $1 for update`, [runs[0].id])
      const sender = await open(kind)
      expect(await sender.broadcast(news, 'it rains')).toMatchObject({ outcome: 'delivered' })
      expect(await runs[1].result()).toBe('it rains')
      await stranger.query('rollback')
      expect(await runs[0].result()).toBe('it rains')
    },
    30_000,
  )

  it('a viewer reads every view, and can read no payload, make no token and complete no wait', async () => {
    const { open, as, schema } = await roled()
    const worker = await open('worker')
    await worker.work()
    await worker.start(asking, 'canary of an input', { metadata: { note: 'canary of metadata' } })
    await expect.poll(async () => (await worker.count({ status: 'waiting' })).count).toBe(1)
    const token = handed.at(-1) ?? ''
    let seen = ''
    for (const name of viewNames) {
      const place = viewSchema(schema, name)
      const views = await as('viewer', `select viewname as name from pg_views where schemaname = '${place}'`)
      for (const { name: view } of views) {
        seen += JSON.stringify(await as('viewer', `select * from ${place}.${String(view)}`))
      }
    }
    expect(seen).toContain('asking')
    expect(seen).not.toContain('canary')
    expect(seen).not.toContain(readCompletionToken(token)?.secret)
    for (const sql of [
      `select data from ${schema}.journal`,
      `select data from ${schema}.messages`,
      `select metadata from ${schema}.runs`,
      `select * from ${schema}.secrets`,
      `select * from ${viewSchema(schema, 'instances', 'payloads')}.events`,
      `insert into ${schema}.messages select * from ${schema}.messages`,
      `update ${schema}.runs set control_request = null`,
    ]) {
      await expect(as('viewer', sql)).rejects.toMatchObject({ code: '42501' })
    }
  })

  it('the migrator changes the tables later, and what it makes has the rights of before', async () => {
    const { roles, schema, as } = await roled()
    await as(
      'migrator',
      `drop table ${schema}.tags; create table ${schema}.tags (shard smallint, tag text, run_id uuid)`,
    )
    await expect(as('worker', `select * from ${schema}.tags`)).rejects.toMatchObject({ code: '42501' })
    // A migration that comes later says nothing of roles.
    const again = await installPostgres({ url: roles.urlOf('migrator'), schema })
    expect(again.roles).toBe(schema)
    expect(await as('worker', `select * from ${schema}.tags`)).toEqual([])
  })

  it('rights that another user has added to a role of ours are taken back, and no other role has any', async () => {
    const { pool, schema, quoted, rows } = await migratedPlace()
    await installRoles(pool, { schema, prefix: schema })
    const names = roleNames(schema)
    onTestFinished(async () => {
      for (const role of Object.values(names)) await rows(`drop owned by ${role} cascade; drop role ${role}`)
    })
    await rows(`grant all on ${quoted}.secrets to ${names.viewer}; grant select on ${quoted}.journal to public;
      grant select (data) on ${quoted}.journal to ${names.viewer}`)
    await installRoles(pool, { schema })
    const found = await rows(`select table_name as name, grantee from information_schema.column_privileges
      where table_schema = '${schema}' and (grantee = 'PUBLIC' or grantee = '${names.viewer}')
        and (table_name = 'secrets' or column_name in ('data', 'metadata') or grantee = 'PUBLIC')`)
    expect(found).toEqual([])
    await expect(installRoles(pool, { schema, prefix: 'other' })).rejects.toThrow(`are called ${schema}_…`)
  })

  it.each(['Shop', 'a"; drop role x; --', '1a', 'pg_shop', 'ä', 'a'.repeat(52)])(
    'a prefix that is none is refused before anything is executed: %s',
    async (prefix) => {
      const { pool, schema } = await migratedPlace()
      await expect(planRoles(pool, { schema, prefix })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    },
  )

  it('no table and no column was forgotten', async () => {
    const { schema, rows, pool } = await migratedPlace()
    const hidden = { broadcasts: 'data', journal: 'data', messages: 'data', runs: 'metadata' }
    for (const [table, columns] of Object.entries(viewedColumns)) {
      const found = await rows(`select column_name as name from information_schema.columns
        where table_schema = '${schema}' and table_name = '${table}'`)
      const all = [...columns.split(' '), hidden[table as keyof typeof hidden]]
      expect(all.toSorted()).toEqual(found.map(({ name }) => String(name)).toSorted())
    }
    const plan = (await planRoles(pool, { schema, prefix: schema })).join('\n')
    for (const table of tableNames) expect(plan).toMatch(new RegExp(`grant .* on .*\\.${table} to .*_worker`))
  })
})
