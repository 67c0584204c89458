// The contract over a pool of the user's own that takes several statements at a time.

import { Pool } from 'pg'
import { afterAll } from 'vitest'
import { runContract } from '../contract/run-contract.ts'
import { openTestStore } from '../support/postgres-store.ts'
import { sharedPostgres } from '../support/postgres-shared.ts'

let lent: Pool | undefined

async function pool(): Promise<Pool> {
  return (lent ??= new Pool({ connectionString: await sharedPostgres(), max: 6, pipeline: true }))
}

afterAll(() => lent?.end())

runContract('Postgres over a pool of the user with a pipeline', async () => openTestStore({ pool: await pool() }))
