// A cluster of Citus for tests: a coordinator and two workers, each a Postgres of its own on this machine. Citus is not an
// npm package and most machines lack it: a test says that it skips, and why.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { extensionsOf, missingPostgres, type DebianVersion } from './postgres-binaries.ts'
import { startPostgres, type Cluster } from './postgres.ts'

const versions: readonly DebianVersion[] = ['18', '17', '16', '15']

export interface CitusCluster {
  /** Of the coordinator, to which every process connects. */
  readonly url: string
  readonly coordinator: Cluster
  readonly workers: readonly [Cluster, Cluster]
  remove(): Promise<void>
}

/** Why no cluster can be started here, in words for a test that is skipped; undefined if one can. */
export function missingCitus(): string | undefined {
  if (installed() !== undefined) return undefined
  return `this machine has no Citus: no ${join(extensionsOf(versions.at(-1) ?? '15'), 'citus.control')}, nor of a later Postgres`
}

/** The Postgres that Citus is installed for. */
function installed(): DebianVersion | undefined {
  return versions.find(
    (version) => missingPostgres(version) === undefined && existsSync(join(extensionsOf(version), 'citus.control')),
  )
}

/** @param settings of all three servers, besides those that Citus needs */
export async function startCitus(settings: Readonly<Record<string, string>> = {}): Promise<CitusCluster> {
  const version = installed()
  if (version === undefined) throw new Error(`Cannot start Citus: ${missingCitus()}.`)
  const password = randomBytes(12).toString('hex')
  const all = {
    fsync: 'off',
    max_connections: '400',
    shared_preload_libraries: 'citus',
    max_prepared_transactions: '400',
    'citus.node_conninfo': 'sslmode=disable',
    'citus.enable_statistics_collection': 'off',
    ...settings,
  }
  const start = (): Promise<Cluster> => startPostgres({ version, password, settings: all })
  const started = await Promise.allSettled([start(), start(), start()])
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const remove = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.remove()))
  }
  try {
    for (const one of started) if (one.status === 'rejected') throw one.reason
    const [coordinator, ...workers] = servers as [Cluster, Cluster, Cluster]
    const { username } = new URL(coordinator.url)
    for (const { url } of servers) {
      await run(url, [
        'create extension citus',
        `insert into pg_dist_authinfo (nodeid, rolename, authinfo) values (0, '${username}', 'password=${password}')`,
      ])
    }
    await run(coordinator.url, [
      `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
      ...workers.map(({ port }) => `select citus_add_node('127.0.0.1', ${port})`),
    ])
    return { url: coordinator.url, coordinator, workers, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

async function run(url: string, texts: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const text of texts) await client.query(text)
  } finally {
    await client.end()
  }
}
