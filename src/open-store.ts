// The stores by their addresses. Each is loaded when it is asked for: who keeps runs elsewhere needs none of its drivers.

import { HoldfastError } from './core/error.ts'
import type { Ports } from './core/ports.ts'
import { didYouMean, shown } from './core/suggest.ts'
import { newTokenKey } from './core/token.ts'
import type { Store } from './store.ts'
import { MemoryStore } from './stores/memory/store.ts'

const schemes = ['memory:', 'sqlite:', 'turso:', 'libsql:', 'postgres:']

/** The store that an address names. */
export async function openStore(url: string, ports: Ports): Promise<Store> {
  if (url === 'memory:') return new MemoryStore({ clock: ports.clock, tokenKey: newTokenKey(ports.random) })
  if (url.startsWith('sqlite:')) {
    const { openSqliteStore } = await import('./stores/sqlite/index.ts')
    return openSqliteStore({ path: url.slice('sqlite:'.length), logger: ports.logger })
  }
  if (url.startsWith('turso:')) {
    const { openTursoStore } = await import('./stores/turso/index.ts')
    return openTursoStore({ path: url.slice('turso:'.length), logger: ports.logger })
  }
  if (url.startsWith('libsql:')) {
    const { openLibsqlStore } = await import('./stores/turso/index.ts')
    return openLibsqlStore({ url, logger: ports.logger })
  }
  if (isPostgres(url)) {
    const { openPostgresStore } = await import('./stores/postgres/index.ts')
    return openPostgresStore({ url, logger: ports.logger })
  }
  // No more than the scheme is shown, and only what can be one: the rest may hold a password.
  const scheme = /^[a-z][a-z0-9+]{0,15}:|^[\w.-]{1,20}$/i.exec(url)?.[0] ?? ''
  throw new HoldfastError(
    'STORE_UNKNOWN',
    `There is no store for ${scheme === '' ? 'this address' : shown(scheme)}.${didYouMean(scheme, schemes)} ` +
      "Use 'sqlite:app.db', 'postgres://…' or 'memory:', or hand over a store object.",
  )
}

export function isPostgres(url: string): boolean {
  return url.startsWith('postgres:') || url.startsWith('postgresql:')
}

/** What an application hands over instead of an address. */
export function checkStore(store: unknown): Store {
  const isStore = typeof store === 'object' && store !== null && 'commit' in store && 'claim' in store
  if (isStore) return store as unknown as Store
  throw new HoldfastError(
    'INVALID_OPTION',
    `createHoldfast({ store }) needs an address such as 'memory:', or a store object. Got ${shown(store)}.`,
  )
}
