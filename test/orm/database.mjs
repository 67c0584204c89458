// A Postgres for the tests of this folder: the one of DATABASE_URL, or one that is started for them.

import { existsSync } from 'node:fs'

const helper = new URL('../support/postgres.ts', import.meta.url)

/** Where Postgres is, and how to let go of it; null where there is none. */
export async function findPostgres() {
  const url = process.env.DATABASE_URL
  if (url !== undefined && url !== '') return { url, stop: async () => undefined }
  if (!existsSync(helper)) return null
  const { startPostgres } = await import(/* @vite-ignore */ helper.pathname)
  const cluster = await startPostgres()
  return { url: cluster.url, stop: () => cluster.remove() }
}
