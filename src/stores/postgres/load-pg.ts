// The driver `pg`, which whoever uses this store installs. Its import is there for bundlers to see: they put it into the bundle. Inside
// of `try`, they go on without it if it is not installed.

import type pg from 'pg'
import { missingDriver, unloadableDriver } from '../load-driver.ts'

export type Pg = typeof pg

export async function loadPg(): Promise<Pg> {
  try {
    const { default: loaded } = await import('pg')
    return loaded
  } catch (error) {
    const code = (error as { readonly code?: unknown } | null)?.code
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    throw isMissing ? missingDriver('pg', 'A Postgres store', error) : unloadableDriver('pg', error)
  }
}
