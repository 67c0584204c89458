// Connections that listen: one of their own, or one that is borrowed from the user's pool for as long as it is needed.

import type { Client, PoolClient } from 'pg'
import type { PoolLike } from '../connection/database.ts'
import { expectErrors } from '../connection/connection.ts'
import type { ListenClient } from './listener.ts'
import { loadPg } from '../connection/load-pg.ts'

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
  return listenClient(client, () => void client.end().catch(() => undefined))
}

/**
 * One of the user's connections. It is not given back: a listening connection is not in the state in which they opened it.
 */
export async function listenOver(pool: PoolLike): Promise<ListenClient> {
  const lent = await pool.connect()
  return listenClient(lent as unknown as PoolClient, () => {
    // Before a farewell its driver would wait for answers that may never come.
    lent.connection?.stream?.destroy()
    lent.release(true)
  })
}

function listenClient(client: Client | PoolClient, discard: () => void): ListenClient {
  let discarded = false
  return {
    query: (text, values = []) => client.query(text, [...values]),
    on(event: string, call: (given: never) => void) {
      client.on(event as 'error', call as (error: Error) => void)
    },
    discard() {
      if (discarded) return
      discarded = true
      // Later errors are ignored.
      client.removeAllListeners('notification')
      discard()
    },
  }
}
