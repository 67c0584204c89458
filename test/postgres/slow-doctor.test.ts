// The doctor reads everything, which may take longer than anything that others wait for.

import { Client } from 'pg'
import { expect, test } from 'vitest'
import { createHoldfast, workflow } from '../../src/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { migratedSchema } from '../support/postgres-shared.ts'

/** A store with one run, whose doctor reads the feed only where a condition holds. */
async function check(condition: string): Promise<readonly string[]> {
  const { url, schema } = await migratedSchema()
  const nothing = workflow('nothing', { feed: true }, () => null)
  const unhurried = await openPostgresStore({ url, schema })
  const holdfast = await createHoldfast({ store: unhurried, workflows: [nothing] })
  await holdfast.start(nothing)
  await holdfast.close()
  await unhurried.close()
  const store = await openPostgresStore({ url, schema, storageTimeout: '1s' })
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`
      alter table "${schema}".feed rename to kept;
      create view "${schema}".feed as select * from "${schema}".kept where ${condition}`)
    return (await store.doctor()).flatMap(({ offenders }) => offenders)
  } finally {
    await client.end()
    await store.close()
  }
}

test('a check may take longer than the storage timeout and the patience with a silent network', async () => {
  expect(await check('(select pg_sleep(2.5)) is not null')).toEqual([])
})

// Such plans look costly, so the server compiled each of them: a check of 40 runs took 12 s instead of 0.2 s.
test('a check is not compiled, whatever the server does by default', async () => {
  const { url } = await migratedSchema()
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(`select current_setting('jit') as jit`)
  await client.end()
  // The default of Postgres: otherwise this test shows nothing.
  expect(rows).toEqual([{ jit: 'on' }])
  expect(await check(`1 / (current_setting('jit') = 'off')::integer = 1`)).toEqual([])
})

// With statistics from when there was next to nothing, a check of a thousand runs looked through a table for every row of
// another: 41 s.
test('a check joins tables without loops, whatever the statistics are', async () => {
  expect(await check(`1 / (current_setting('enable_nestloop') = 'off')::integer = 1`)).toEqual([])
})
