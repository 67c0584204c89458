// A Holdfast that works under a role of the database that is neither a superuser nor the owner of the tables.

import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import type { Holdfast, HoldfastOptions } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { keepLines } from '../holdfast/open.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

export async function execute(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** A Holdfast that works under a role of its own, and what its superuser may do to it. */
export async function underRole(
  workflows: NonNullable<HoldfastOptions['workflows']>,
  shards = 1,
): Promise<{
  readonly holdfast: Holdfast
  readonly logger: ReturnType<typeof keepLines>
  readonly ask: (...statements: readonly string[]) => Promise<void>
  readonly role: string
  readonly schema: string
  /** The address for that role. */
  readonly store: string
}> {
  const { url, schema } = await freshSchema()
  const role = `${schema}_worker`
  const admin = await openPostgresStore({ url, schema, shards, listen: false })
  await admin.migrate()
  await admin.close()
  const ask = (...statements: readonly string[]): Promise<void> => execute(url, ...statements)
  await ask(
    `create role ${role} login password 'secret'`,
    `grant usage on schema ${schema} to ${role}`,
    `grant select, insert, update, delete on all tables in schema ${schema} to ${role}`,
    `grant usage, select, update on all sequences in schema ${schema} to ${role}`,
  )
  onTestFinished(() => ask(`drop owned by ${role} cascade`, `drop role ${role}`))
  const own = new URL(url)
  own.username = role
  own.password = 'secret'
  own.searchParams.set('schema', schema)
  if (shards > 1) own.searchParams.set('shards', String(shards))
  const logger = keepLines()
  const holdfast = await holdfastAt({ store: own.href, workflows, migrate: false, logger })
  return { holdfast, logger, ask, role, schema, store: own.href }
}
