// The doctor reads everything, which may take longer than anything that others wait for.

import { Client } from 'pg'
import { expect, test } from 'vitest'
import { createHoldfast, workflow } from '../../src/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { freshSchema } from '../support/postgres-shared.ts'

test('a check may take longer than the storage timeout and the patience with a silent network', async () => {
  const { url, schema } = await freshSchema()
  const store = await openPostgresStore({ url, schema, storageTimeout: '200ms' })
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const nothing = workflow('nothing', () => null)
    const holdfast = await createHoldfast({ store, workflows: [nothing] })
    await holdfast.start(nothing)
    await holdfast.close()
    await client.query(`
      alter table "${schema}".feed rename to kept;
      create view "${schema}".feed as select * from "${schema}".kept where (select pg_sleep(1.5)) is not null`)
    expect((await store.check()).flatMap(({ offenders }) => offenders)).toEqual([])
  } finally {
    await client.end()
    await store.close()
  }
})
