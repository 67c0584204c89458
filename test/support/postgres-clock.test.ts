// The database's time stands still until a test moves it, and a store never reads a time that has passed.

import { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createVirtualClock } from '../../src/testing/index.ts'
import { createPostgresClock, withClock, type PostgresClock } from './postgres-clock.ts'
import { freshSchema } from './postgres-shared.ts'

let pool: Pool
let table: PostgresClock

beforeAll(async () => {
  pool = new Pool({ connectionString: (await freshSchema()).url })
})
beforeEach(async () => {
  table = await createPostgresClock(pool, (await freshSchema()).schema)
})
afterAll(() => pool.end())

/** As the store reads it. */
async function read(): Promise<number> {
  const { rows } = await pool.query<{ ms: string; type: string }>(
    `select ${table.expression} as ms, pg_typeof(${table.expression})::text as type`,
  )
  expect(rows[0]?.type).toBe('bigint')
  return Number(rows[0]?.ms)
}

it('the expression is the time that the test has set', async () => {
  const began = table.now()
  expect(await read()).toBe(began)
  expect(began).toBe(createVirtualClock().now())
  await table.advance(1500)
  expect([table.now(), await read()]).toEqual([began + 1500, began + 1500])
})

it('a call of the store sees the time at which it began, also among others', async () => {
  const clock = createVirtualClock()
  const seen = { now: () => read(), inTransaction: () => ({ start: () => read() }) }
  const store = withClock(seen, table, clock)
  const began = clock.now()
  expect(await store.now()).toBe(began)
  await clock.advance(10)
  expect(await Promise.all([store.now(), store.now(), store.inTransaction().start()])).toEqual(
    Array(3).fill(began + 10),
  )
  await clock.advance(5)
  expect(await store.inTransaction().start()).toBe(began + 15)
})

it('a store is closed although the time can be written no more', async () => {
  const clock = createVirtualClock()
  const set = (): Promise<never> => Promise.reject(new Error('the pool has ended'))
  const store = withClock({ close: async () => 'closed', get: async () => 'got' }, { ...table, set }, clock)
  await clock.advance(1)
  expect(await store.close()).toBe('closed')
  await expect(store.get()).rejects.toThrow('the pool has ended')
})

it('what is no method is handed through', () => {
  const capabilities = { notifies: true }
  expect(withClock({ capabilities }, table, createVirtualClock()).capabilities).toBe(capabilities)
})
