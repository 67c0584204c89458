// A second Postgres that follows the first one by streaming replication, made as an operator makes one: a base backup of the
// running server, and its write-ahead log from there on. It can be promoted when the first one is gone.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { copyRunning, give } from './base-backup.ts'
import { startPostgres, type Cluster } from './postgres.ts'
import { startRelay } from './relay.ts'
import { accountOf, makeServerFolder } from './server-folder.ts'

export interface Standby extends Cluster {
  /** From now on the primary acknowledges only what is on this server's disk, too. */
  followSynchronously(): Promise<void>
  /** It receives nothing any more. */
  loseTouch(): Promise<void>
  /** Takes the place of the primary, which must be gone. */
  promote(): Promise<void>
}

/** Its files are removed with it. */
export async function startStandby(
  primary: Cluster,
  settings: Readonly<Record<string, string>> = {},
): Promise<Standby> {
  const folder = makeServerFolder('standby', accountOf())
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  await copyRunning(primary.url, data)
  const signal = join(data, 'standby.signal')
  writeFileSync(signal, '')
  give(signal)
  const line = await startRelay(primary.port)
  const { username, password } = new URL(primary.url)
  const source = `host=127.0.0.1 port=${line.port} user=${username} password=${password} application_name=standby`
  const cluster = await startPostgres({
    version: 'embedded',
    settings: { ...settings, primary_conninfo: source },
    dataDir: data,
    password,
  })
  const isStreaming = `select 1 from pg_stat_replication where application_name = 'standby' and state = 'streaming'`
  await untilFound(primary.url, isStreaming)
  return {
    ...cluster,
    async followSynchronously() {
      // In the primary's own file only: the copy was made before, and must not wait for a standby once it is promoted.
      await query(primary.url, `alter system set synchronous_standby_names = 'standby'`)
      await query(primary.url, 'select pg_reload_conf()')
      await untilFound(primary.url, `select 1 from pg_stat_replication where sync_state = 'sync'`)
      const [now] = await query(primary.url, 'select pg_current_wal_lsn()::text as lsn')
      const isFlushed = `select 1 from pg_stat_replication where flush_lsn >= '${String(now?.['lsn'])}'`
      await untilFound(primary.url, isFlushed)
    },
    loseTouch: () => line.close(),
    async promote() {
      await query(cluster.url, 'select pg_promote(true, 60)')
      await line.close()
    },
    async remove() {
      await line.close()
      await cluster.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, unknown>>(text)
    return rows
  } finally {
    await client.end()
  }
}

async function untilFound(url: string, text: string): Promise<void> {
  for (let tries = 1; (await query(url, text)).length === 0; tries += 1) {
    if (tries === 600) throw new Error(`After 30 s there was still no row: ${text}`)
    await setTimeout(50)
  }
}
