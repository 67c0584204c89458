// How a user's own library begins and ends a transaction: on a connection of its pool.

import type { Pool } from 'pg'
import type { HoldfastOptions } from 'holdfast'

export function transactionOn(pool: Pool): NonNullable<HoldfastOptions['transaction']> {
  return async (work) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await work(client)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
}
