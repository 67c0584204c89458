// The stores that can be measured. `sqlite` without a path means a fresh file for every sample, in the folder for
// temporary files, removed afterwards; a file that was named is kept, and grows.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemoryStore, type Store } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'

export const storeKinds = ['memory', 'sqlite'] as const

export type StoreKind = (typeof storeKinds)[number]

/** What is before the colon of a store's address; the rest may hold a password. */
export function storeKindOf(address: string): StoreKind {
  const kind = storeKinds.find((name) => name === address.split(':', 1)[0])
  if (kind === undefined) throw new Error(`There is no store for "${address.split(':', 1)[0]}:".`)
  return kind
}

/** Opens a store, lets `use` have it, and closes it whatever happens. */
export async function withStore<Result>(address: string, use: (store: Store) => Promise<Result>): Promise<Result> {
  if (storeKindOf(address) === 'memory') return closing(createMemoryStore(), use)
  return withSqliteFile(address, async (path) => closing(await openSqliteStore({ path, logger: console }), use))
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
