// The store of a command, and whether the command may use it: a command that only reads must not create an empty database
// from a misspelt path, and a store in memory is empty for every command but a worker.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Store } from '../../store.ts'
import { inMemory, pathOf } from '../../stores/sqlite/driver/file-address.ts'
import { visible } from '../../core/text/printable.ts'
import { quoted, usage } from '../usage.ts'

/** What a command needs of its store: an existing one, one that it may create, or any, even one in memory. */
export type StoreNeed = 'existing' | 'creatable' | 'any'

/** The store, if the command may use it. Of a file, the address in its plainest form: `sqlite:app.db`. */
export function checkStore(named: string | Store | undefined, need: StoreNeed, cwd: string): string | Store {
  if (named === undefined || named === '') {
    throw usage('Which store? Name it with --store sqlite:app.db, or in the environment: HOLDFAST_STORE=sqlite:app.db.')
  }
  if (typeof named !== 'string') return named
  const path = fileOf(named)
  const store = path === null ? named : `${schemeOf(named)}:${path}`
  if ((store === 'memory:' || path === inMemory) && need !== 'any') {
    throw usage(
      `The store "${store}" lives in the memory of one process: for this command it would always be empty. ` +
        'Name one that lasts, for example --store sqlite:app.db.',
    )
  }
  if (path !== null && path !== inMemory && need === 'existing' && !existsSync(resolve(cwd, path))) {
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

function schemeOf(store: string): string {
  return store.slice(0, Math.max(0, store.indexOf(':')))
}

function nameOf(store: string): string | undefined {
  const scheme = schemeOf(store)
  return Object.hasOwn(names, scheme) ? names[scheme] : undefined
}

/** The path of a store that is a file; null for every other. Throws INVALID_OPTION at a path that cannot be one. */
function fileOf(store: string): string | null {
  const path = store.slice(store.indexOf(':') + 1)
  const isServer = store.startsWith('libsql://')
  return nameOf(store) === undefined || isServer || path === '' ? null : pathOf(path)
}

/**
 * A store as it may be printed. Only the address of a file is shown whole: others may hold a password. Of a Postgres address the
 * host and the database are shown, if it is certain which part they are.
 */
export function shownStore(store: string | Store): string {
  if (typeof store !== 'string') return 'a store of the module'
  if (store === 'memory:' || isFile(store)) return visible(store)
  const [, server] = /^postgres(?:ql)?:\/\/(?:[^@/?#]*@)?([\w.-]+(?::\d+)?\/[\w.-]+)(?:\?[^@]*)?$/.exec(store) ?? []
  if (server !== undefined) return `postgres://${server}`
  // The text before the first colon of a mistyped address may be a secret, too.
  return /^(?:libsql|postgres|postgresql):/.exec(store)?.[0] ?? 'a store of an unknown kind'
}

function isFile(store: string): boolean {
  try {
    return fileOf(store) !== null
  } catch {
    // An address that cannot be parsed may contain a secret.
    return false
  }
}
