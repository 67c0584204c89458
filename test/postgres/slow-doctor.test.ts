// The doctor reads everything, which may take longer than anything that others wait for.

import { Client } from 'pg'
import { expect, test } from 'vitest'
import { createHoldfast, workflow } from '../../src/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { freshSchema } from '../support/postgres-shared.ts'

/** A store with one run, whose doctor reads the feed only where a condition holds. */
async function check(condition: string): Promise<readonly string[]> {
  const { url, schema } = await freshSchema()
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

// With statistics from when there was next to nothing, a check of a thousand runs looked through a table for every row of
// another: 41 s.
test('a check joins tables without loops, whatever the statistics are', async () => {
  expect(await check(`1 / (current_setting('enable_nestloop') = 'off')::integer = 1`)).toEqual([])
})
