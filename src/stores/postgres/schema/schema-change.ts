// How tables are changed while other processes use them: in transactions that wait only shortly for a lock, because all later
// statements queue behind a waiting change of a table, and that are tried again after a conflict.

import { setTimeout } from 'node:timers/promises'
import { HoldfastError } from '../../../core/errors/error.ts'
import type { ClientLike, PoolLike } from '../connection/database.ts'
import { setLocalRole } from './ownership.ts'
import { ownSearchPath } from '../connection/search-path.ts'
import { isTransient, sqlStateOf, translated } from '../connection/sql-state.ts'

const lockTimeout = '2s'
const mostTries = 40
const longestPauseMs = 250

/** The differences between the databases that speak Postgres. */
export interface Server {
  readonly isCockroach: boolean
  /** Views can be read with the rights of their reader, and not of their owner: from Postgres 15 on. */
  readonly hasInvokerViews: boolean
}

/** The beginning of a transaction that changes tables, as `owner` if one is named: its new objects belong to that role. */
export function frame({ isCockroach }: Pick<Server, 'isCockroach'>, owner?: string): readonly string[] {
  return [
    // A read after a lock must see the commits of its earlier holders. CockroachDB changes tables only when serializable.
    `begin isolation level ${isCockroach ? 'serializable' : 'read committed'}`,
    `set local lock_timeout = '${lockTimeout}'`,
    'set local statement_timeout = 0',
    // A view and a check keep the objects that a name meant when they were made.
    `set local search_path = ${ownSearchPath}`,
    ...(owner === undefined ? [] : [setLocalRole(owner)]),
    // It would commit before every change of a table, and let go of the lock.
    ...(isCockroach ? ['set local autocommit_before_ddl = off'] : []),
  ]
}

export async function serverOf(client: ClientLike): Promise<Server> {
  const text = `select pg_catalog.version() as version, pg_catalog.current_setting('server_version_num'::text) as number`
  const { rows } = await client.query({ text })
  const isCockroach = String(rows[0]?.['version']).includes('CockroachDB')
  return { isCockroach, hasInvokerViews: !isCockroach && Number(rows[0]?.['number']) >= 150_000 }
}

/** One connection for all of it. Nothing is left behind on it. */
export async function connected<Answer>(
  pool: PoolLike,
  work: (client: ClientLike) => Promise<Answer>,
): Promise<Answer> {
  let broken: Error | undefined
  let client: ClientLike | undefined
  try {
    client = await pool.connect()
    return await work(client)
  } catch (error) {
    const isAnswered = sqlStateOf(error) !== undefined || error instanceof HoldfastError
    if (!isAnswered) broken = error as Error
    throw translated(error)
  } finally {
    client?.release(broken)
  }
}

/** Tries again after conflicts with other transactions. */
export async function again<Answer>(client: ClientLike, work: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      // A connection that is gone rolls back by itself.
      await client.query({ text: 'rollback' }).catch(() => undefined)
      if (tries >= mostTries || !isInTheWay(error)) throw error
    }
    await setTimeout(Math.min(longestPauseMs, 5 * tries))
  }
}

/** Another transaction holds a lock, or has just created the same object. */
function isInTheWay(error: unknown): boolean {
  const state = sqlStateOf(error)
  const isRaced = state === '23505' || state === '42P06' || state === '42P07' || state === '42710'
  return isTransient(state) || isRaced || (state === 'XX000' && /concurrently/.test(String(error)))
}
