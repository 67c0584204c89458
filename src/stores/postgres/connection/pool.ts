// The connections that a store opens itself. They carry the settings of every transaction from their start; behind a pooler,
// which takes no such thing, they go without, and every transaction brings its own.

import type { Pool, PoolConfig } from 'pg'
import { messageOf } from '../../../core/errors/error.ts'
import { checkAddress } from './address.ts'
import { keptFor } from './connection-budget.ts'
import type { PoolLike } from './database.ts'
import { expectErrors } from './connection.ts'
import type { DefaultIsolation } from './isolation.ts'
import { loadPg, type Pg } from './load-pg.ts'
import { ownSearchPath, setPath } from './search-path.ts'
import { sqlStateOf, translated } from './sql-state.ts'
import { isSpread as isSpreadOn } from '../schema/citus.ts'
import { timesFor, type LockWait } from './timeouts.ts'

export interface OwnPool {
  readonly pool: PoolLike
  /**
   * The connection that is kept for heartbeats, if there are enough for that. It is opened by the first heartbeat and stays open:
   * a server that is full by the time of the next one would refuse another, and the session would be taken for dead.
   */
  readonly beats: PoolLike | null
  /** The server's own values of our settings; null if the connections have no others. */
  readonly defaults: Settings | null
  /** Citus has spread the tables of the schema. */
  readonly isSpread: boolean
}

export interface PoolOptions {
  readonly url: string
  readonly max: number
  /** By whether the rows are spread over machines. */
  readonly settings: (isSpread: boolean) => Settings
  /** The schema of the tables, whose rows may be spread by Citus. */
  readonly schema: string
  /** The isolation of statements outside of transactions. */
  readonly isolation: DefaultIsolation
  readonly connectMs: number
  readonly onError: (error: Error) => void
}

/** The settings of every transaction. */
export type Settings = Readonly<Record<string, string>>

/**
 * No statement of ours waits for longer than half a lease, and no plan is chosen for tables that are still small: a row that
 * is found by an index today is found by it, and in its order, when there are millions. A batch is sorted or looped over
 * where there is no other way, which these settings do not forbid.
 */
export function settingsFor(storageMs: number, wait: LockWait, isSpread = false): Settings {
  const { statementMs, lockMs } = timesFor(storageMs, wait)
  return {
    statement_timeout: String(statementMs),
    idle_in_transaction_session_timeout: String(statementMs),
    lock_timeout: String(lockMs),
    search_path: ownSearchPath,
    // The generic plan serves all batches: statements are written so that no custom plan is worth making. Citus has to see the
    // shard to find its machine.
    plan_cache_mode: isSpread ? 'auto' : 'force_generic_plan',
    ...planning('off'),
  }
}

/** Ways of a plan that read more the more there is. */
function planning(allowed: 'on' | 'off'): Settings {
  return {
    enable_seqscan: allowed,
    enable_bitmapscan: allowed,
    enable_sort: allowed,
    enable_incremental_sort: allowed,
    enable_nestloop: allowed,
    enable_mergejoin: allowed,
    jit: allowed,
  }
}

/** The same for statements of users, whose plans and patience are their own. No query: those may come before SET TRANSACTION. */
export function localSettings(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) =>
      name === 'search_path' ? setPath(value) : `set local ${name} = '${value.replaceAll("'", "''")}'`,
    )
    .join('; ')
}

/** The settings as one query, for the transaction in which it stands. */
export function settingsSql(settings: Settings): string {
  const calls = Object.entries(settings).map(
    ([name, value]) => `pg_catalog.set_config('${name}'::text, '${value}'::text, true)`,
  )
  return `select ${calls.join(', ')}`
}

function isolationSetting(isolation: DefaultIsolation): Settings {
  return isolation === null ? {} : { default_transaction_isolation: isolation }
}

interface Look {
  readonly isSpread: boolean
  readonly settings: Settings
  readonly defaults: Settings
}

/** Opens a pool, and tries it. */
export async function openPool(options: PoolOptions): Promise<OwnPool> {
  await checkAddress(options.url, 'url')
  const pg = await loadPg()
  const { defaults, isSpread, settings } = await look(pg, options)
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  const direct = createPools(pg, options, flags.join(' '))
  try {
    if (await hasSettings(direct.pool)) return { ...direct, defaults, isSpread }
  } catch (error) {
    if (!isUnsupportedParameter(error)) {
      await direct.pool.end()
      throw translated(error)
    }
  }
  await direct.pool.end()
  const pooled = createPools(pg, options, undefined)
  try {
    await hasSettings(pooled.pool)
    return { ...pooled, defaults: null, isSpread }
  } catch (error) {
    await pooled.pool.end()
    throw translated(error)
  }
}

/** As many connections as are allowed, one of them for heartbeats. None is opened before the first request. */
function createPools(pg: Pg, options: PoolOptions, settings: string | undefined): Pick<OwnPool, 'pool' | 'beats'> {
  const kept = keptFor(options.max).heartbeat
  const pool = createPool(pg, { ...options, max: options.max - kept }, settings, {})
  // Without an idle timeout: it would be closed between heartbeats.
  const beats = kept === 0 ? null : createPool(pg, { ...options, max: kept }, settings, { idleTimeoutMillis: 0 })
  return { pool, beats }
}

function createPool(
  pg: Pg,
  { url, max, connectMs, onError }: PoolOptions,
  options: string | undefined,
  idle: PoolConfig,
): PoolLike & Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    ...idle,
    pipeline: true,
    keepAlive: true,
    application_name: 'holdfast',
    connectionTimeoutMillis: connectMs,
    allowExitOnIdle: true,
    ...(options === undefined ? {} : { options }),
  })
  // A connection that breaks while it is idle is replaced at the next request.
  pool.on('error', onError)
  pool.on('connect', expectErrors)
  return pool
}

/**
 * Whether the tables are spread, our settings, and their values for this user of this database, from the server's files or by ALTER ROLE or ALTER DATABASE. A
 * connection that began with ours cannot distinguish them: to it they are the defaults.
 */
async function look(pg: Pg, options: PoolOptions): Promise<Look> {
  const { url, schema, connectMs } = options
  const client = new pg.Client({
    connectionString: url,
    application_name: 'holdfast',
    connectionTimeoutMillis: connectMs,
  })
  expectErrors(client)
  try {
    await client.connect()
    const isSpread = await isSpreadOn(client, schema)
    const settings = { ...options.settings(isSpread), ...isolationSetting(options.isolation) }
    const columns = Object.keys(settings).map((name) => `pg_catalog.current_setting('${name}'::text) as ${name}`)
    const { rows } = await client.query<Record<string, string>>(`select ${columns.join(', ')}`)
    return { isSpread, settings, defaults: rows[0] ?? {} }
  } catch (error) {
    throw translated(error)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Tries a connection. A pooler may also take the settings and keep them to itself. */
async function hasSettings(pool: PoolLike): Promise<boolean> {
  const client = await pool.connect()
  let broken = true
  try {
    const { rows } = await client.query({
      text: `select pg_catalog.current_setting('enable_seqscan'::text) as seqscan`,
    })
    broken = false
    return rows[0]?.['seqscan'] === 'off'
  } finally {
    client.release(broken)
  }
}

/** The error of a pooler that refuses settings at the start of a connection. */
function isUnsupportedParameter(error: unknown): boolean {
  return sqlStateOf(error) === '08P01' && messageOf(error).includes('startup parameter')
}
