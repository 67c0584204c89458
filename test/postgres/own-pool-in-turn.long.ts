// The store over a pool of the user's own, which takes one statement at a time: every transaction brings its settings, and
// leaves nothing behind. One that takes several at a time stands in own-pool.long.ts.

import { Pool } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import type { ClientLike, PoolLike } from '../../src/stores/postgres/connection/database.ts'
import { openTestStore } from '../support/postgres-store.ts'
import { sharedPostgres } from '../support/postgres-shared.ts'
import { runContract } from '../contract/run-contract.ts'

let lent: Pool | undefined

async function pool(): Promise<Pool> {
  return (lent ??= new Pool({ connectionString: await sharedPostgres(), max: 6 }))
}

afterAll(() => lent?.end())

/** The texts that write or lock and have no place in the plan of statements. */
const unplanned = new Set<string>()
let isPlanned = false

/** The same pool; looks at every statement that is sent. What has a place in the plan was reported just before. */
function watched(mine: Pool): PoolLike {
  return {
    async connect() {
      const client: ClientLike = await mine.connect()
      return {
        query(config) {
          const isOurs = config.name !== undefined
          if (isOurs && !isPlanned && /\b(insert|update|delete)\b/i.test(config.text)) unplanned.add(config.text)
          isPlanned = false
          return client.query(config)
        },
        release: (error) => client.release(error),
      }
    },
    end: async () => undefined,
  }
}

runContract('Postgres over a pool of the user', async () =>
  openTestStore({ pool: watched(await pool()), onStatement: () => (isPlanned = true) }),
)

describe('the statement plan', () => {
  it('has a place for everything that writes or locks', () => {
    expect([...unplanned]).toEqual([])
  })
})

describe('a pool of the user', () => {
  it('WC-S4 has nothing of ours on its connections, and is open after the store is closed', async () => {
    const mine = await pool()
    const { store } = await openTestStore({ pool: mine })
    await store.count({}, 1)
    await store.beat({ session: 'one', leaseMs: 1_000 })
    await store.close()
    const { rows } = await mine.query(
      `select name from pg_settings where setting is distinct from reset_val
        and name in ('statement_timeout', 'lock_timeout', 'enable_seqscan')`,
    )
    expect(rows).toEqual([])
  })
})
