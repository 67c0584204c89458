// The deploy gate on Postgres, for a role that may only read.

import { Client, escapeIdentifier } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import * as deployed from '../../examples/deploy-gate/deployed.ts'
import { createHoldfast } from '../../src/index.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { cli } from './world.ts'

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** The address of the same schema for a role that may look at its tables and do nothing else. */
async function readOnly(url: string, schema: string): Promise<string> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(async () => {
    await client.query(`drop owned by ${role}`)
    await client.query(`drop role ${role}`)
    await client.end()
  })
  const role = escapeIdentifier(`${schema}_reader`)
  const name = escapeIdentifier(schema)
  await client.query(`create role ${role} login password 'looks'`)
  await client.query(`grant usage on schema ${name} to ${role}`)
  await client.query(`grant select on all tables in schema ${name} to ${role}`)
  await client.query(`revoke select on ${name}.secrets from ${role}`)
  const address = new URL(url)
  address.username = `${schema}_reader`
  address.password = 'looks'
  address.searchParams.set('schema', schema)
  return address.href
}

it('a role that may only read is enough', async () => {
  const { url, schema } = await freshSchema()
  const store = `${url}?schema=${schema}`
  const holdfast = await createHoldfast({ store, workflows: deployed, logger: quiet, migrate: true })
  const worker = await holdfast.work()
  for (const id of ['1', '2', '3']) await holdfast.start(deployed.order, { id, total: 1 })
  await expect.poll(async () => (await holdfast.count({ status: 'waiting' })).count).toBe(3)
  await worker.stop()
  await holdfast.close()
  const address = await readOnly(url, schema)
  const agrees = await cli(['check', 'examples/deploy-gate/compatible.ts', '--against', address])
  expect([agrees.code, agrees.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^Replayed 3 runs from postgres:\/\/[\w.-]+(:\d+)?\/\w+, and this build agrees with every one\.\n$/,
    ),
  ])
  const harms = await cli(['check', 'examples/deploy-gate/incompatible.ts', '--against', address])
  expect([harms.code, harms.stdout]).toEqual([6, expect.stringContaining('3 runs of shop.order v1 would drift')])
  expect(harms.stdout + harms.stderr).not.toContain('looks')
  const { stdout } = await cli(['runs', '--store', address, '--json'])
  const [first] = (JSON.parse(stdout) as { readonly runs: readonly { readonly id: string }[] }).runs
  const exported = await cli(['export', first?.id ?? '', '--store', address])
  expect([exported.code, exported.stdout]).toEqual([0, expect.stringContaining('"kind": "step-succeeded"')])
})
