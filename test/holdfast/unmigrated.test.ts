// A Postgres whose tables are made by a deployment, and not by the first process that comes.

import { expect, it, vi } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { freshSchema } from '../support/postgres-shared.ts'
import { keepLines, open } from './open.ts'

const echo = workflow('unmigrated.echo', (_ctx, n: number) => n)

it('without its tables a Holdfast that shall not make them does not open, and says what to do', async () => {
  const { url, schema } = await freshSchema()
  const options = { store: `${url}?schema=${schema}`, workflows: [echo], logger: keepLines() }
  const refused = expect.objectContaining({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('holdfast migrate') as string,
  }) as unknown
  await expect(createHoldfast({ ...options, migrate: false })).rejects.toEqual(refused)
  vi.stubEnv('NODE_ENV', 'production')
  await expect(createHoldfast(options)).rejects.toEqual(refused)
  const store = await openPostgresStore({ url, schema })
  await store.migrate()
  await store.close()
  const holdfast = await open(options)
  vi.unstubAllEnvs()
  await holdfast.work()
  expect(await (await holdfast.start(echo, 2)).result()).toBe(2)
})
