// Connections that listen: one of their own, or one that is borrowed from the user's pool for as long as it is needed.

import type { Client, PoolClient } from 'pg'
import type { PoolLike } from './database.ts'
import { expectErrors } from './line.ts'
import type { ListenClient } from './listening.ts'
import { loadPg } from './load-pg.ts'

/** A connection to this address. */
export async function listenAt(url: string, connectMs: number): Promise<ListenClient> {
  const pg = await loadPg()
  const client = new pg.Client({
    connectionString: url,
    keepAlive: true,
    application_name: 'holdfast listener',
    connectionTimeoutMillis: connectMs,
  })
  expectErrors(client)
  await client.connect()
  return listening(client, () => void client.end().catch(() => undefined))
}

/** One of the user's connections. It is not given back: what listens is not what they opened it as. */
export async function listenOver(pool: PoolLike): Promise<ListenClient> {
  const lent = await pool.connect()
  return listening(lent as unknown as PoolClient, () => {
    // Before a farewell its driver would wait for answers that may never come.
    lent.connection?.stream?.destroy()
    lent.release(true)
  })
}

function listening(client: Client | PoolClient, discard: () => void): ListenClient {
  let discarded = false
  return {
    query: (text, values = []) => client.query(text, [...values]),
    on(event: string, call: (given: never) => void) {
      client.on(event as 'error', call as (error: Error) => void)
    },
    discard() {
      if (discarded) return
      discarded = true
      // What still breaks now concerns nobody.
      client.removeAllListeners('notification')
      discard()
    },
  }
}
