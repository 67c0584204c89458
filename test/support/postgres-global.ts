// One Postgres for all test files of a run, started when the first of them asks for it.

import { randomBytes } from 'node:crypto'
import { Client, escapeIdentifier } from 'pg'
import { shareLazily } from './lazily-shared.ts'
import { startPostgres, type Cluster } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: SharedPostgres
  }
}

export interface SharedPostgres {
  /** Answers with the URL of the server, and starts it first if it must. */
  readonly address: string
  /** With this the name of every schema and database begins that is made in this run. */
  readonly prefix: string
}

/** A crash of the machine would lose data; nothing else about it is different from a server in earnest. */
const settings = { fsync: 'off', max_connections: '300', max_wal_size: '4GB' }

/** What vitest calls before the first test file; what it returns is called after the last. */
export async function setup(
  project: { provide(key: 'postgres', value: SharedPostgres): void },
  start: () => Promise<Cluster> = () => startPostgres({ settings }),
): Promise<() => Promise<void>> {
  const prefix = `holdfast_${randomBytes(4).toString('hex')}_`
  let cluster: Promise<Cluster> | null = null
  const { address, close } = await shareLazily(async () => (await (cluster = start())).url)
  project.provide('postgres', { address, prefix })
  return async () => {
    close()
    const used = await cluster?.catch(() => null)
    if (used === null || used === undefined) return
    if (used.untouchable !== null) await tidyUp(used.url, prefix)
    await used.remove()
  }
}

/** A server that is not ours stays, but nothing of this run stays in it. */
async function tidyUp(url: string, prefix: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const [kind, list, force] of [
      ['schema', 'select nspname as name from pg_namespace', 'cascade'],
      ['database', 'select datname as name from pg_database', 'with (force)'],
    ] as const) {
      const { rows } = await client.query<{ name: string }>(list)
      for (const { name } of rows.filter((row) => row.name.startsWith(prefix))) {
        await client.query(`drop ${kind} ${escapeIdentifier(name)} ${force}`)
      }
    }
  } finally {
    await client.end()
  }
}
