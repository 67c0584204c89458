// The stores that can be measured. `sqlite` without a path means a fresh file for every sample, in the folder for
// temporary files, removed afterwards; a file that was named is kept, and grows. How `postgres` becomes the address of a
// server is described in postgres.ts; on it every sample has a schema of its own.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemoryStore, type Store } from 'holdfast'
import { openPostgresStore, type PostgresStoreOptions } from 'holdfast/postgres'
import { openSqliteStore } from 'holdfast/sqlite'
import { logger } from './logger.ts'
import { withSchema } from './postgres.ts'

export const storeKinds = ['memory', 'sqlite', 'postgres'] as const

export type StoreKind = (typeof storeKinds)[number]

/** What is before the colon of a store's address; the rest may hold a password. */
export function storeKindOf(address: string): StoreKind {
  const [scheme] = address.split(':', 1)
  const kind = storeKinds.find((name) => name === (scheme === 'postgresql' ? 'postgres' : scheme))
  if (kind === undefined) throw new Error(`There is no store for "${scheme}:".`)
  return kind
}

/** Opens a store, lets `use` have it, and closes it whatever happens. */
export async function withStore<Result>(address: string, use: (store: Store) => Promise<Result>): Promise<Result> {
  const kind = storeKindOf(address)
  if (kind === 'memory') return closing(createMemoryStore(), use)
  if (kind === 'postgres') return withPostgresStore(address, use)
  return withSqliteFile(address, async (path) => closing(await openSqliteStore({ path, logger }), use))
}

/** The same for Postgres, together with the name of the schema. */
export async function withPostgresStore<Result>(
  url: string,
  use: (store: Store, schema: string) => Promise<Result>,
  options: Pick<PostgresStoreOptions, 'storageTimeout'> = {},
): Promise<Result> {
  return withSchema(url, async (schema) => {
    const store = await openPostgresStore({ ...options, url, schema, logger })
    return closing(store, (opened) => use(opened, schema))
  })
}

/** Lets `use` have the path of the SQLite file that an address means. */
export async function withSqliteFile<Result>(address: string, use: (path: string) => Promise<Result>): Promise<Result> {
  const path = address.slice('sqlite:'.length)
  if (path !== '') return use(path)
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
  try {
    return await use(join(folder, 'bench.db'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function closing<Result>(store: Store, use: (store: Store) => Promise<Result>): Promise<Result> {
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}
