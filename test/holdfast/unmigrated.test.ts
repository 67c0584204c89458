// A database whose tables are made by a deployment, and not by the first process that comes.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { freshSchema } from '../support/postgres-shared.ts'
import { keepLines, open } from './open.ts'

const echo = workflow('unmigrated.echo', (_ctx, n: number) => n)

it('a SQLite file without its tables is not filled by who shall not, and says what to do', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-unmigrated-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = `sqlite:${join(folder, 'empty.db')}`
  const options = { store, workflows: [echo], logger: keepLines() }
  await expect(createHoldfast({ ...options, migrate: false })).rejects.toMatchObject({
    code: 'STORE_REFUSED',
    message: expect.stringContaining('holdfast migrate') as string,
  })
  const holdfast = await open(options)
  await holdfast.work()
  expect(await (await holdfast.start(echo, 2)).result()).toBe(2)
})

it('without its tables a Holdfast that shall not make them does not open, and says what to do', async () => {
  const { url, schema } = await freshSchema()
  const options = { store: `${url}?schema=${schema}`, workflows: [echo], logger: keepLines() }
  const refused = expect.objectContaining({
    code: 'STORE_REFUSED',
    message: expect.stringContaining('holdfast migrate') as string,
  }) as unknown
  await expect(createHoldfast({ ...options, migrate: false })).rejects.toEqual(refused)
  vi.stubEnv('NODE_ENV', 'production')
  await expect(createHoldfast(options)).rejects.toEqual(refused)
  await expect(createHoldfast(options)).rejects.toThrow('NODE_ENV is production')
  await expect(createHoldfast({ ...options, migrate: false })).rejects.not.toThrow('NODE_ENV')
  const store = await openPostgresStore({ url, schema })
  await store.migrate()
  await store.close()
  const holdfast = await open(options)
  vi.unstubAllEnvs()
  await holdfast.work()
  expect(await (await holdfast.start(echo, 2)).result()).toBe(2)
})
