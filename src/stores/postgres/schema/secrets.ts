// The keys that the database has made with its tables. Each has a column of its own, because rights are given by column.

import { HoldfastError } from '../../../core/errors/error.ts'
import { patienceFor } from '../connection/database.ts'
import { withConnection, type PoolSource } from '../connection/connection.ts'
import { quoteSchema } from './schema-name.ts'
import { translated } from '../connection/sql-state.ts'

export type SecretColumn = 'token_key' | 'notice_key'

/** Rejects with STORE_REFUSED for a role that may not read it, and where the schema has no such table yet. */
export async function readSecret(
  source: PoolSource,
  storageMs: number,
  schema: string,
  column: SecretColumn,
): Promise<string> {
  const text = `select ${column} as value from ${quoteSchema(schema)}.secrets where shard = 0::smallint`
  const ms = { ms: storageMs }
  const options = { use: 'general', patienceMs: patienceFor(storageMs), turn: ms, connect: ms } as const
  try {
    const { rows } = await withConnection(source, options, (pooled) => pooled.query({ text }))
    const value = rows[0]?.['value']
    if (typeof value === 'string' && value !== '') return value
  } catch (error) {
    throw translated(error)
  }
  // The same secret cannot be made again, and a substitute could be guessed.
  throw new HoldfastError(
    'STORE_REFUSED',
    `The table "secrets" has no ${column} any more. Restore its row from a backup: with a new one, tokens and notices of the old one become invalid.`,
  )
}
