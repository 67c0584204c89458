// The driver `pg`, which users of this store install. Its import is there for bundlers to see, so that a bundle holds all it
// needs. Inside of `try`, they go on without it if it is not installed. A bundle that holds it but cannot run it (esbuild's
// of ES modules, in which CommonJS finds no `require`) takes the one that is installed.

import type pg from 'pg'
import { loadNativeDriver } from '../../load-driver.ts'

export type Pg = typeof pg

export async function loadPg(): Promise<Pg> {
  try {
    const { default: loaded } = await import('pg')
    return loaded
  } catch (error) {
    return loadNativeDriver<Pg>('pg', 'A Postgres store', error)
  }
}
