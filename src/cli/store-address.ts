// Which store a command speaks to, and whether it may: a command that only reads must not make an empty database out of a
// misspelt path, and a store that lives in memory is empty and gone again for every command but a worker.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HoldfastError } from '../core/error.ts'
import type { Store } from '../store.ts'
import { visible } from './escape.ts'
import { quoted, usage } from './usage.ts'

/** What a command needs of its store: one that is there, one that it may create, or any, even one in memory. */
export type StoreNeed = 'existing' | 'creatable' | 'any'

export function checkStore(store: string | Store | undefined, need: StoreNeed, cwd: string): string | Store {
  if (store === undefined || store === '') {
    throw usage('Which store? Name it with --store sqlite:app.db, or in the environment: HOLDFAST_STORE=sqlite:app.db.')
  }
  if (typeof store !== 'string') return store
  const path = fileOf(store)
  if ((store === 'memory:' || path === ':memory:') && need !== 'any') {
    throw usage(
      `The store "${store}" lives in the memory of one process: for this command it would always be empty. ` +
        'Name one that lasts, for example --store sqlite:app.db.',
    )
  }
  if (path !== null && path !== ':memory:' && need === 'existing' && !existsSync(resolve(cwd, path))) {
    throw new HoldfastError(
      'STORE_UNKNOWN',
      `There is no ${nameOf(store)} file ${quoted(path)}. Check the path of --store or HOLDFAST_STORE; ` +
        '`holdfast migrate`, `worker` and `start` create it, other commands do not.',
      { details: { path } },
    )
  }
  return store
}

const names: Readonly<Record<string, string>> = { sqlite: 'SQLite', turso: 'Turso', libsql: 'libsql' }

function nameOf(store: string): string | undefined {
  return names[store.slice(0, store.indexOf(':'))]
}

/** The path of a store that is a file; null for every other. */
function fileOf(store: string): string | null {
  const path = store.slice(store.indexOf(':') + 1)
  const isServer = store.startsWith('libsql://')
  return nameOf(store) === undefined || isServer ? null : path
}

/** A store as it may be printed. Only the address of a file is shown whole: others may hold a password. */
export function shownStore(store: string | Store): string {
  if (typeof store !== 'string') return 'a store of the module'
  if (store === 'memory:' || fileOf(store) !== null) return visible(store)
  return visible(store.slice(0, store.indexOf(':') + 1))
}
