// A pool on the Postgres that all test files share, and names of schemas that nobody else uses.

import { Pool } from 'pg'
import { onTestFinished } from 'vitest'
import type { PoolLike } from '../../../../src/stores/postgres/connection/database.ts'
import { quoteSchema } from '../../../../src/stores/postgres/schema/schema-name.ts'
import { patiently } from '../../../support/patiently.ts'
import { freshSchema, migratedSchema } from '../../../support/postgres-shared.ts'

export type TestPool = Pool & PoolLike

export interface Place {
  readonly pool: TestPool
  /** A name that no schema has yet. */
  readonly schema: string
  /** The same, as it may stand in a statement. */
  readonly quoted: string
  /** Rows of a statement. */
  readonly rows: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
}

export function openPool(url: string): TestPool {
  const pool = new Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  return pool
}

/** A place without tables. */
export async function emptyPlace(suffix = ''): Promise<Place> {
  const { url, schema } = await freshSchema()
  return placeAt(url, schema + suffix)
}

/** A place with tables. */
export async function migratedPlace(): Promise<Place> {
  const { url, schema } = await migratedSchema()
  return placeAt(url, schema)
}

function placeAt(url: string, schema: string): Place {
  const pool = openPool(url)
  return {
    pool,
    schema,
    quoted: quoteSchema(schema),
    rows: async (sql) => (await patiently(() => pool.query(sql))).rows as never,
  }
}
