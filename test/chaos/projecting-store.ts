// The stores of the test of projections, by their addresses.

import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import type { Store, StoreAdmin } from '../../src/store.ts'

/** `sqlite <path>` or `postgres <url> <schema>`. */
export async function openAt(address: string): Promise<Store & StoreAdmin> {
  const [kind, place = '', schema = ''] = address.split(' ')
  const store =
    kind === 'sqlite' ? await openSqliteStore({ path: place }) : await openPostgresStore({ url: place, schema })
  return store
}
