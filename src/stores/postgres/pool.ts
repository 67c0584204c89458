// The connections that a store opens itself. They carry the settings of every transaction from their start; behind a pooler,
// which takes no such thing, they go without, and every transaction brings its own.

import pg from 'pg'
import { messageOf } from '../../core/error.ts'
import type { PoolLike } from './database.ts'
import { sqlStateOf, translated } from './sql-state.ts'

export interface OwnPool {
  readonly pool: PoolLike
  /** The connections have the settings from their start. */
  readonly isDirect: boolean
}

export interface PoolOptions {
  readonly url: string
  readonly max: number
  readonly settings: Settings
  readonly connectMs: number
  readonly onError: (error: Error) => void
}

/** What holds for every transaction. */
export type Settings = Readonly<Record<string, string>>

/**
 * Nothing of ours waits for longer than half a lease, and no plan is made for tables that are still small: what is found by
 * an index today is found by it, and in its order, when there are millions. A batch is sorted or looped over where there is
 * no other way, which these settings do not forbid.
 */
export function settingsFor(storageMs: number): Settings {
  const ms = (part: number): string => String(Math.max(1, Math.round(storageMs * part)))
  return {
    statement_timeout: ms(0.9),
    idle_in_transaction_session_timeout: ms(0.9),
    lock_timeout: ms(1 / 15),
    // What is planned for one batch serves all: statements are written so that no other plan is worth making.
    plan_cache_mode: 'force_generic_plan',
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

/** For statements of users: their plans are their own. */
export const lentSettings = settingsSql(planning('on'))

/** The settings as one statement, for the transaction in which it stands. */
export function settingsSql(settings: Settings): string {
  const calls = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', true)`)
  return `select ${calls.join(', ')}`
}

/** Opens a pool, and tries it. */
export async function openPool(options: PoolOptions): Promise<OwnPool> {
  const flags = Object.entries(options.settings).map(([name, value]) => `-c ${name}=${value}`)
  const direct = createPool(options, flags.join(' '))
  try {
    if (await hasSettings(direct)) return { pool: direct, isDirect: true }
  } catch (error) {
    if (!isUnsupportedParameter(error)) {
      await direct.end()
      throw translated(error)
    }
  }
  await direct.end()
  const pooled = createPool(options, undefined)
  try {
    await hasSettings(pooled)
    return { pool: pooled, isDirect: false }
  } catch (error) {
    await pooled.end()
    throw translated(error)
  }
}

function createPool({ url, max, connectMs, onError }: PoolOptions, options: string | undefined): PoolLike & pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    pipeline: true,
    keepAlive: true,
    application_name: 'holdfast',
    connectionTimeoutMillis: connectMs,
    allowExitOnIdle: true,
    ...(options === undefined ? {} : { options }),
  })
  // A connection that breaks while nobody uses it is replaced when somebody needs one.
  pool.on('error', onError)
  // One that breaks while somebody has it fails what is under way; an event that nobody hears would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** Tries a connection. A pooler may also take the settings and keep them to itself. */
async function hasSettings(pool: PoolLike): Promise<boolean> {
  const client = await pool.connect()
  let broken = true
  try {
    const { rows } = await client.query({ text: `select current_setting('enable_seqscan') as seqscan` })
    broken = false
    return rows[0]?.['seqscan'] === 'off'
  } finally {
    client.release(broken)
  }
}

/** What a pooler says to settings at the start of a connection. */
function isUnsupportedParameter(error: unknown): boolean {
  return sqlStateOf(error) === '08P01' && messageOf(error).includes('startup parameter')
}
