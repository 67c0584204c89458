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
  if ((store === 'memory:' || store === 'sqlite::memory:') && need !== 'any') {
    throw usage(
      `The store "${store}" lives in the memory of one process: for this command it would always be empty. ` +
        'Name one that lasts, for example --store sqlite:app.db.',
    )
  }
  const path = store.startsWith('sqlite:') ? store.slice('sqlite:'.length) : null
  if (path !== null && path !== ':memory:' && need === 'existing' && !existsSync(resolve(cwd, path))) {
    throw new HoldfastError(
      'STORE_UNKNOWN',
      `There is no SQLite file ${quoted(path)}. Check the path of --store or HOLDFAST_STORE; ` +
        '`holdfast migrate`, `worker` and `start` create it, other commands do not.',
      { details: { path } },
    )
  }
  return store
}

/** A store as it may be printed. Only the address of a file is shown whole: others may hold a password. */
export function shownStore(store: string | Store): string {
  if (typeof store !== 'string') return 'a store of the module'
  if (store === 'memory:' || store.startsWith('sqlite:')) return visible(store)
  return visible(store.slice(0, store.indexOf(':') + 1))
}
