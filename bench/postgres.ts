// The Postgres that is measured: one of its own for the whole benchmark, on a fresh data folder, or the one that was named.
// Every sample has a schema of its own, which is dropped afterwards.

import { Client, escapeIdentifier } from 'pg'
import { startPostgres } from '../test/support/postgres.ts'

/** Everything else is as Postgres comes: above all, a commit waits for the disk. A crowd needs more connections than 100. */
const settings = { shared_buffers: '256MB', max_connections: '300' }

/** What a server that is to say how long each statement took has besides. */
const statementTimes = { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track_utility': 'off' }

export interface ServerOptions {
  /** It says how long each statement took. @default false */
  readonly timesStatements?: boolean
  /** Ctrl-C ends the process and the server with it. Otherwise the server lives until `use` has ended. @default true */
  readonly interruptible?: boolean
}

/** Lets `use` have the address of a store. If that is to be on a server of its own, the server lives as long as `use`. */
export async function withServer<Result>(
  address: string,
  use: (address: string) => Promise<Result>,
  { timesStatements = false, interruptible = true }: ServerOptions = {},
): Promise<Result> {
  if (address !== 'postgres' && address !== 'postgres:') return use(address)
  const cluster = await startPostgres({
    version: 'embedded',
    settings: timesStatements ? { ...settings, ...statementTimes } : settings,
    detached: !interruptible,
  })
  // The server ends with us, also when we are asked to end.
  const leave = (): never => process.exit(1)
  if (interruptible) process.once('SIGINT', leave).once('SIGTERM', leave)
  try {
    if (timesStatements) await withClient(cluster.url, (client) => client.query('create extension pg_stat_statements'))
    return await use(cluster.url)
  } finally {
    process.off('SIGINT', leave).off('SIGTERM', leave)
    await cluster.remove()
  }
}

let schemas = 0

/** Lets `use` have the name of a schema that nobody else uses, and drops it whatever happens. */
export async function withSchema<Result>(url: string, use: (schema: string) => Promise<Result>): Promise<Result> {
  schemas += 1
  const schema = `bench_${process.pid}_${schemas}`
  try {
    return await use(schema)
  } finally {
    await withClient(url, (client) => client.query(`drop schema if exists ${escapeIdentifier(schema)} cascade`))
  }
}

/** Lets `use` have a connection with no part of Holdfast around it. */
export async function withClient<Result>(url: string, use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url, pipeline: true, application_name: 'holdfast bench' })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}
