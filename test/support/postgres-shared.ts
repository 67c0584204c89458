// What a test file gets of the run's Postgres: a schema or a database that nobody else uses. It need not clean up: our own
// server is thrown away after the run, and from one that is not ours everything of this run is dropped at its end.

import { randomBytes } from 'node:crypto'
import { Client, escapeIdentifier } from 'pg'
import { inject } from 'vitest'
import { askFor } from './lazily-shared.ts'
// Its declaration of what is provided comes with it.
import type { SharedPostgres } from './postgres-global.ts'

let asked: Promise<string> | null = null

/** The URL of the server that all test files share. */
export function sharedPostgres(): Promise<string> {
  const { address }: SharedPostgres = inject('postgres')
  return (asked ??= askFor(address))
}

/** The name of a schema that does not exist yet, and where it may be made. Cheap: prefer it. */
export async function freshSchema(): Promise<{ readonly url: string; readonly schema: string }> {
  return { url: await sharedPostgres(), schema: freshName() }
}

/** The URL of an empty database, for tests that look at what a whole database does, or hold its snapshots. */
export async function freshDatabase(): Promise<string> {
  const url = new URL(await sharedPostgres())
  const name = freshName()
  const client = new Client({ connectionString: url.href })
  await client.connect()
  try {
    await client.query(`create database ${escapeIdentifier(name)} template template0`)
  } finally {
    await client.end()
  }
  url.pathname = `/${name}`
  return url.href
}

function freshName(): string {
  return `${inject('postgres').prefix}${randomBytes(6).toString('hex')}`
}
