// The pool stands in front of the server in earnest: clients share connections, transaction by transaction.

import { Client } from 'pg'
import { expect, it } from 'vitest'
import { missingPgbouncer, startPgbouncer, type Pooler } from './pgbouncer.ts'
import { sharedPostgres } from './postgres-shared.ts'

const missing = missingPgbouncer()

async function withPool(
  settings: Readonly<Record<string, string | number>>,
  use: (pooler: Pooler) => Promise<void>,
): Promise<void> {
  const pooler = await startPgbouncer(await sharedPostgres(), settings)
  try {
    await use(pooler)
  } finally {
    await pooler.stop()
  }
}

async function open(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

it('two clients take turns on one connection, transaction by transaction', async (context) => {
  if (missing !== undefined) context.skip(missing)
  await withPool({ default_pool_size: 1 }, async ({ url }) => {
    const clients = [await open(url), await open(url)]
    const pids = new Set<unknown>()
    for (const client of [...clients, ...clients]) {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      pids.add(rows[0]?.pid)
    }
    expect(pids.size).toBe(1)
    await clients[0]?.query('begin')
    let isAnswered = false
    const second = clients[1]?.query('select 1').then(() => (isAnswered = true))
    await clients[0]?.query('select 1')
    expect(isAnswered).toBe(false)
    await clients[0]?.query('commit')
    await second
    await Promise.all(clients.map((client) => client.end()))
  })
})

it('the pool lets in nobody without the password', async (context) => {
  if (missing !== undefined) context.skip(missing)
  await withPool({}, async ({ url }) => {
    const stranger = new URL(url)
    stranger.password = 'guessed'
    await expect(open(stranger.href)).rejects.toMatchObject({ severity: 'FATAL' })
  })
})

it('a pool that cannot start says why', async (context) => {
  if (missing !== undefined) context.skip(missing)
  await expect(withPool({ pool_mode: 'sometimes' }, async () => undefined)).rejects.toThrow('pool_mode')
})

it('a pool that is stopped is gone', async (context) => {
  if (missing !== undefined) context.skip(missing)
  let left = ''
  await withPool({}, async ({ url }) => {
    await (await open(url)).end()
    left = url
  })
  await expect(open(left)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
