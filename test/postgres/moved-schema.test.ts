// Two schemas that share a key: what was encrypted for one is not read in the other, unless the options say that they are one.

import { randomBytes } from 'node:crypto'
import { Client, escapeIdentifier } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { workflow } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt, opened } from './proxied.ts'

const echo = workflow('echo', async (_ctx, input: string) => input)

async function copiedRun(namespace: string | undefined) {
  const keys = { k: randomBytes(32) }
  const codec = encryptingCodec({ keys, current: 'k', ...(namespace === undefined ? {} : { namespace }) })
  const { url, schema: theirs } = await migratedSchema()
  const { schema: ours } = await migratedSchema()
  const [{ store: from }, { store: to }] = [await opened({ url, schema: theirs }), await opened({ url, schema: ours })]
  const there = await holdfastAt({ store: from, workflows: [echo], codec })
  const here = await holdfastAt({ store: to, workflows: [echo], codec })
  const run = await there.start(echo, 'paid 1000000 to EVIL')
  const attacker = new Client({ connectionString: url })
  await attacker.connect()
  onTestFinished(() => attacker.end())
  const at = (schema: string, table: string): string => `${escapeIdentifier(schema)}.${escapeIdentifier(table)}`
  for (const table of ['runs', 'journal']) {
    await attacker.query(`insert into ${at(ours, table)} select * from ${at(theirs, table)}`)
  }
  expect([from.capabilities.namespace, to.capabilities.namespace]).toEqual([theirs, ours])
  return { here, there, run }
}

test('a ciphertext moved from another schema with the same key is refused', async () => {
  const { here, there, run } = await copiedRun(undefined)
  expect(await here.journal(run.id)).toMatchObject([{ data: undefined, unreadable: { entry: { seq: 1 } } }])
  expect(await there.journal(run.id)).toMatchObject([{ data: 'paid 1000000 to EVIL' }])
})

test('a schema that was restored under another name is read by who says what it is called', async () => {
  const { here, run } = await copiedRun('shop')
  expect(await here.journal(run.id)).toMatchObject([{ data: 'paid 1000000 to EVIL' }])
})
