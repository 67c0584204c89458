// The stores by their addresses. Each is loaded when it is asked for: an application with another store needs none of its
// drivers.

import { HoldfastError, isHoldfastError } from './core/errors/error.ts'
import type { Clock, Ports } from './core/runtime/ports.ts'
import { didYouMean, shown } from './core/text/suggest.ts'
import { newTokenKey } from './core/completion/completion-token.ts'
import type { Store, StoreAdmin } from './store.ts'
import { MemoryStore } from './stores/memory/store.ts'

const schemes = ['memory:', 'sqlite:', 'turso:', 'libsql:', 'postgres:']

/** The store that an address names. With a clock, its time is that of the clock: for tests. @default the database's own time */
export async function openStore(
  url: string,
  ports: Pick<Ports, 'clock' | 'random' | 'logger'>,
  clock?: Pick<Clock, 'now'>,
): Promise<Store & StoreAdmin> {
  const { logger } = ports
  const time = clock === undefined ? {} : { clock }
  if (url === 'memory:') return new MemoryStore({ clock: clock ?? ports.clock, tokenKey: newTokenKey(ports.random) })
  if (url.startsWith('sqlite:')) {
    const { openSqliteStore } = await import('./stores/sqlite/index.ts')
    return openSqliteStore({ path: url.slice('sqlite:'.length), logger, ...time })
  }
  if (url.startsWith('turso:')) {
    const { openTursoStore } = await import('./stores/turso/index.ts')
    return openTursoStore({ path: url.slice('turso:'.length), logger, ...time })
  }
  if (url.startsWith('libsql:')) {
    const { openLibsqlStore } = await import('./stores/turso/index.ts')
    return openLibsqlStore({ url, logger, ...time })
  }
  if (isPostgres(url)) {
    if (clock !== undefined) throw ownTime()
    const { openPostgresStore } = await import('./stores/postgres/index.ts')
    return openPostgresStore({ url, logger })
  }
  // A path has no scheme that could be meant, and what looks like one holds no password.
  if (/^[\w./-]+\.(?:db|sqlite3?)$/i.test(url)) {
    throw new HoldfastError(
      'STORE_UNKNOWN',
      `There is no store for ${shown(url)}. Did you mean ${shown(`sqlite:${url}`)}?`,
    )
  }
  // Only the scheme is shown, and only a text that can be one: the rest may hold a password.
  const scheme = /^[a-z][a-z0-9+]{0,15}:|^[\w.-]{1,20}$/i.exec(url)?.[0] ?? ''
  throw new HoldfastError(
    'STORE_UNKNOWN',
    `There is no store for ${scheme === '' ? 'this address' : shown(scheme)}.${meantBy(scheme)} ` +
      "Use 'sqlite:app.db', 'postgres://…' or 'memory:', or hand over a store object.",
  )
}

/** Drivers and other libraries have taught people these. */
const otherNames: Readonly<Record<string, string>> = {
  'pg:': 'postgres:',
  'psql:': 'postgres:',
  'pgsql:': 'postgres:',
  'file:': 'sqlite:',
  'sqlite3:': 'sqlite:',
}

function meantBy(scheme: string): string {
  const name = scheme.toLowerCase()
  const known = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined
  return known === undefined ? didYouMean(scheme, schemes) : ` Did you mean "${known}"?`
}

/** Its statements read the server's clock, which no test moves. */
function ownTime(): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'A store on Postgres goes by the clock of its server, so it cannot follow the time of a test. Test on SQLite, which can: ' +
      "store: 'sqlite:test.db'. Test features that only Postgres has with createHoldfast(), in real time.",
  )
}

export function isPostgres(url: string): boolean {
  return url.startsWith('postgres:') || url.startsWith('postgresql:')
}

const missingTables: readonly unknown[] = ['42P01', '3F000']

/** The error of a store that production has not migrated: if tables are missing, it says why nothing made them. */
export function unmigrated(error: unknown): unknown {
  if (!isHoldfastError(error, 'STORE_REFUSED') || !missingTables.includes(error.details['sqlState'])) return error
  const why =
    'NODE_ENV is production, where createHoldfast() makes no tables on Postgres by itself: run `holdfast migrate` in the ' +
    'deployment, or say createHoldfast({ migrate: true }).'
  return new HoldfastError(error.code, `${error.message}. ${why}`, { cause: error, details: error.details })
}

/** Checks the store that an application passes instead of an address. */
export function checkStore(store: unknown): Store {
  const isStore = typeof store === 'object' && store !== null && 'commit' in store && 'claim' in store
  if (isStore) return store as unknown as Store
  throw new HoldfastError(
    'INVALID_OPTION',
    `createHoldfast({ store }) needs an address such as 'memory:', or a store object. Got ${shown(store)}.`,
  )
}
