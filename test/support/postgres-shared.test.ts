// All test files share one server, and no two of them a schema or a database.

import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { setup, type SharedPostgres } from './postgres-global.ts'
import { freshDatabase, freshSchema, sharedPostgres } from './postgres-shared.ts'
import type { Cluster } from './postgres.ts'

async function ask(url: string, text: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' })
    return rows.flat()
  } finally {
    await client.end()
  }
}

it('a fresh schema does not exist yet, and no two are the same', async () => {
  const [one, other] = await Promise.all([freshSchema(), freshSchema()])
  expect(one.schema).not.toBe(other.schema)
  expect(one.url).toBe(other.url)
  await ask(one.url, `create schema ${one.schema}`)
  await ask(one.url, `create schema ${other.schema}`)
})

it('a fresh database is empty, and no two are the same', async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
  expect(one).not.toBe(other)
  await ask(one, 'create table t (value int)')
  for (const [url, tables] of [
    [one, ['t']],
    [other, []],
  ] as const) {
    expect(await ask(url, `select relname from pg_class where relnamespace = 'public'::regnamespace`)).toEqual(tables)
  }
})

describe('the server of a run', () => {
  async function begin(start: () => Promise<Cluster>): Promise<SharedPostgres & { readonly end: () => Promise<void> }> {
    let provided: SharedPostgres | null = null
    const end = await setup({ provide: (_, value) => void (provided = value) }, start)
    return { ...(provided as unknown as SharedPostgres), end }
  }

  const never = (): never => {
    throw new Error('not to be used')
  }

  function clusterAt(url: string, untouchable: string | null, remove: () => void): Cluster {
    const rest = { start: never, stop: never, restart: never, kill: never, databaseUrl: never, createDatabase: never }
    return { url, port: 1, untouchable, log: () => '', ...rest, remove: async () => remove() }
  }

  it('is started when it is first asked for, once, and removed at the end', async () => {
    const events: string[] = []
    const { address, end } = await begin(async () => {
      events.push('start')
      return clusterAt('postgres://somewhere', null, () => events.push('remove'))
    })
    expect(events).toEqual([])
    const answers = await Promise.all([1, 2, 3].map(async () => (await fetch(address)).text()))
    expect(answers).toEqual(Array(3).fill('postgres://somewhere'))
    expect(events).toEqual(['start'])
    expect((await fetch(new URL('/guessed', address))).status).toBe(404)
    await end()
    expect(events).toEqual(['start', 'remove'])
    await expect(fetch(address)).rejects.toThrow('fetch failed')
  })

  it('is never started in a run that asks for none', async () => {
    const { end } = await begin(never)
    await end()
  })

  it('that cannot start gives every file the reason', async () => {
    const { address, end } = await begin(() => Promise.reject(new Error('there is no Postgres for this machine')))
    const response = await fetch(address)
    expect([response.status, await response.text()]).toEqual([500, 'there is no Postgres for this machine'])
    await end()
  })

  it('that is not ours is rid of what the run made, and of nothing else', async () => {
    const url = await sharedPostgres()
    const { schema: kept } = await freshSchema()
    await ask(url, `create schema ${kept}`)
    const { address, prefix, end } = await begin(async () => clusterAt(url, 'not ours', () => undefined))
    await fetch(address)
    await ask(url, `create schema ${prefix}one`)
    await ask(url, `create table ${prefix}one.t (value int)`)
    await ask(url, `create database ${prefix}two`)
    await end()
    const names = 'select nspname::text from pg_namespace union all select datname::text from pg_database'
    const left = await ask(url, names)
    expect(left.filter((name) => String(name).startsWith(prefix))).toEqual([])
    expect(left).toContain(kept)
  })
})
