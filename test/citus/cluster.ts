// The cluster of Citus of a test file, and stores in it. It is started by the first test that asks for a store.

import { Pool } from 'pg'
import { migrate } from '../../src/stores/postgres/schema/migrate.ts'
import { startCitus, type CitusCluster } from '../support/citus.ts'
import { forgetServer, openTestStore, type TestStore, type TestStoreOptions } from '../support/postgres-store.ts'

export class TestCitus {
  private started: Promise<CitusCluster> | undefined

  /** An empty store whose tables are spread over the workers; its clock stands still until the test moves it. */
  async open(options: TestStoreOptions = {}): Promise<TestStore> {
    this.started ??= startCitus()
    const { url } = await this.started
    return openTestStore({ shards: 16, ...options, server: url, onMade: (schema) => spread(url, schema) })
  }

  async remove(): Promise<void> {
    const cluster = await this.started
    if (cluster === undefined) return
    await forgetServer(cluster.url)
    await cluster.remove()
  }
}

async function spread(url: string, schema: string): Promise<void> {
  const pool = new Pool({ connectionString: url, max: 1 })
  try {
    await pool.query(`select create_reference_table('${schema}.clock')`)
    await migrate(pool, { schema, citus: true, now: `(select ms from ${schema}.clock)` })
  } finally {
    await pool.end()
  }
}
