// How large what the runs leave behind is, and on Postgres how much of it is dead and waits for a vacuum.

import { stat } from 'node:fs/promises'
import type { Client } from 'pg'
import { withClient } from '../postgres.ts'
import type { Place } from './place.ts'
import type { Sample } from './sample.ts'

export type DatabaseSize = Pick<Sample, 'databaseBytes' | 'logBytes' | 'liveRows' | 'deadRows' | 'vacuums'>

export interface TableSize {
  readonly name: string
  readonly bytes: number
  readonly liveRows: number
  readonly deadRows: number
  readonly vacuums: number
}

/** Looks at a database without a part of Holdfast around it. */
export interface Database {
  size(): Promise<DatabaseSize>
  /** The tables, the largest first; none on SQLite, where all of them are one file. */
  tables(): Promise<readonly TableSize[]>
}

export function withDatabase<Result>(place: Place, use: (database: Database) => Promise<Result>): Promise<Result> {
  if (place.kind === 'sqlite') return use(sqliteFile(place.path))
  return withClient(place.url, async (client) => use(await postgresSchema(client, place.schema)))
}

function sqliteFile(path: string): Database {
  // There is no write-ahead log while nobody has the file open.
  const bytes = async (file: string): Promise<number> => (await stat(file).catch(() => null))?.size ?? 0
  return {
    async size() {
      const [databaseBytes, logBytes] = await Promise.all([bytes(path), bytes(`${path}-wal`)])
      return { databaseBytes, logBytes, liveRows: null, deadRows: null, vacuums: null }
    },
    tables: async () => [],
  }
}

async function postgresSchema(client: Client, schema: string): Promise<Database> {
  const tables = async (): Promise<readonly TableSize[]> => {
    const { rows } = await client.query<Record<'name' | 'bytes' | 'live' | 'dead' | 'vacuums', string>>(
      `select relname as name, pg_total_relation_size(relid) as bytes, n_live_tup as live, n_dead_tup as dead,
         autovacuum_count as vacuums
       from pg_stat_user_tables where schemaname = $1 order by 2 desc, 1`,
      [schema],
    )
    return rows.map(({ name, bytes, live, dead, vacuums }) => {
      return { name, bytes: Number(bytes), liveRows: Number(live), deadRows: Number(dead), vacuums: Number(vacuums) }
    })
  }
  const written = async (): Promise<number> => {
    const { rows } = await client.query<{ wal: string }>("select pg_current_wal_insert_lsn() - '0/0' as wal")
    return Number(rows[0]?.wal)
  }
  const before = await written()
  return {
    async size() {
      const [sizes, after] = [await tables(), await written()]
      const sum = (of: (table: TableSize) => number): number => sizes.reduce((total, table) => total + of(table), 0)
      return {
        databaseBytes: sum(({ bytes }) => bytes),
        logBytes: after - before,
        liveRows: sum(({ liveRows }) => liveRows),
        deadRows: sum(({ deadRows }) => deadRows),
        vacuums: sum(({ vacuums }) => vacuums),
      }
    },
    tables,
  }
}
