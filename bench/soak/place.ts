// Where the runs of a soak live, in words that can be sent to another process, and how each process opens it.

import type { Store } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { openSqliteStore } from 'holdfast/sqlite'
import { logger } from '../logger.ts'
import { withSchema, withServer } from '../postgres.ts'
import { storeKindOf, withSqliteFile } from '../stores.ts'

export type Place =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }

/** Lets `use` have the place that an address means. What was made for it is removed afterwards. */
export async function withPlace<Result>(address: string, use: (place: Place) => Promise<Result>): Promise<Result> {
  if (storeKindOf(address) === 'sqlite') return withSqliteFile(address, (path) => use({ kind: 'sqlite', path }))
  // Ctrl-C is ours to handle: the server must outlive it until everyone has let go.
  return withServer(address, (url) => withSchema(url, (schema) => use({ kind: 'postgres', url, schema })), {
    interruptible: false,
  })
}

export async function openPlace(place: Place): Promise<Store> {
  if (place.kind === 'sqlite') return openSqliteStore({ path: place.path, logger })
  return openPostgresStore({ url: place.url, schema: place.schema, logger })
}

/** Lets `use` have the store, and closes it whatever happens. */
export async function withOpenPlace<Result>(place: Place, use: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openPlace(place)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}
