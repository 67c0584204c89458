// Opens a store at a `libsql:` address: a file, which is a SQLite file, or a database on a server such as Turso Cloud's.

import { HoldfastError } from '../../core/errors/error.ts'
import type { Clock, Logger } from '../../core/runtime/ports.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import { Connection } from '../sqlite/driver/connection.ts'
import { openSqliteStore } from '../sqlite/open.ts'
import { shareGate } from '../sqlite/transactions/gate.ts'
import { nowSql } from '../sqlite/driver/settings.ts'
import { SqliteStore } from '../sqlite/store.ts'
import { translated } from '../sqlite/driver/sqlite-errors.ts'
import { parseLibsql } from './address.ts'
import { openRemote } from './remote.ts'

export interface LibsqlStoreOptions {
  /**
   * `'libsql:app.db'`, `'libsql:file:app.db'`, or `'libsql://host?authToken=…'`, with `tls=0` for a server of your own
   * without TLS.
   */
  readonly url: string
  /** The token for the server, instead of in the address. */
  readonly authToken?: string
  /** Where time comes from, for tests that own it. @default the database */
  readonly clock?: Pick<Clock, 'now'>
  /** Gets a warning when the settings or the rights of a file are less safe than the default. */
  readonly logger?: Pick<Logger, 'warn'>
}

const optionNames = ['url', 'authToken', 'clock', 'logger']

/**
 * Opens a store at a `libsql:` address. On a server every statement is a request that the process waits for: keep it near.
 *
 * @example
 * const url = 'libsql://shop-acme.turso.io'
 * const store = await openLibsqlStore({ url, authToken: process.env.TURSO_AUTH_TOKEN })
 */
export async function openLibsqlStore(options: LibsqlStoreOptions): Promise<SqliteStore> {
  checkOptions(options, optionNames, 'openLibsqlStore()')
  const { url, clock, logger } = options
  if (typeof url !== 'string') throw new HoldfastError('INVALID_OPTION', 'openLibsqlStore({ url }) needs an address.')
  const address = parseLibsql(url)
  const optional = { ...(clock === undefined ? {} : { clock }), ...(logger === undefined ? {} : { logger }) }
  if (address.kind === 'file') {
    if (options.authToken !== undefined) throw new HoldfastError('INVALID_OPTION', 'A file takes no authToken.')
    return openSqliteStore({ path: address.path, driver: 'libsql', ...optional })
  }
  const authToken = options.authToken ?? address.authToken
  const db = await openRemote({ url: address.url, authToken }).then(
    (driver) => new Connection(driver),
    (error: unknown) => Promise.reject(translated(error)),
  )
  const now = (): number => clock?.now() ?? (db.get(nowSql, [])?.['now'] as number)
  const { gate, letGo } = shareGate(db.database)
  let looks = 0
  return new SqliteStore({
    db,
    now,
    clock,
    // A server does not report whether other processes have written: every claim looks.
    state: () => ({ now: now(), version: (looks += 1) }),
    writes: { writes: 0 },
    capabilities: { transactions: false },
    gate,
    file: '',
    storageMs: 0,
    onClose() {
      letGo()
      db.close()
    },
  })
}
