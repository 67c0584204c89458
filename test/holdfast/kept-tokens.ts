// What each store keeps, as one text: all that a reader of the database, its files or its backups can see. What only workers
// may read is left out.

import { readFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { onTestFinished } from 'vitest'
import type { Store } from 'holdfast'
import { freshSchema } from '../support/postgres-shared.ts'
import { memoryStore } from './open.ts'

export interface ReadableStore {
  /** For each process. */
  readonly store: string | Store
  /** Nobody has it open any more. */
  readonly dump: () => Promise<string>
}

async function memory(): Promise<ReadableStore> {
  const store = memoryStore()
  return {
    store,
    dump: async () => {
      const runs = await store.find({}, { limit: 10 })
      return JSON.stringify([runs, await store.load(runs.map(({ id }) => ({ runId: id, after: 0, limit: 1_000 })))])
    },
  }
}

async function file(scheme: string): Promise<ReadableStore> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tokens-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const dump = async (): Promise<string> =>
    readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), 'latin1'))
      .join('')
  return { store: `${scheme}:${join(folder, 'runs.db')}`, dump }
}

async function postgres(): Promise<ReadableStore> {
  const { url, schema } = await freshSchema()
  const pool = new Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  const dump = async (): Promise<string> => {
    const tables = await pool.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = '"${schema}"'::regnamespace and relkind = 'r'`,
    )
    const texts = tables.rows.map(async ({ name }) => {
      const { rows } = await pool.query<{ row: string }>(`select t::text as row from "${schema}"."${name}" t`)
      return rows.map(({ row }) => row).join('\n')
    })
    return (await Promise.all(texts)).join('\n')
  }
  return { store: `${url}?schema=${schema}`, dump }
}

export const readableStores: readonly { readonly name: string; readonly make: () => Promise<ReadableStore> }[] = [
  { name: 'memory', make: memory },
  { name: 'SQLite', make: () => file('sqlite') },
  { name: 'Turso', make: () => file('turso') },
  { name: 'libSQL', make: () => file('libsql') },
  { name: 'Postgres', make: postgres },
]
