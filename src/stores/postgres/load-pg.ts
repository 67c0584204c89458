// The driver `pg`, which whoever uses this store installs.

import type pg from 'pg'
import { loadDriver } from '../load-driver.ts'

export type Pg = typeof pg

export async function loadPg(): Promise<Pg> {
  const { default: loaded } = await loadDriver('pg', 'A Postgres store', () => import('pg'))
  return loaded
}
