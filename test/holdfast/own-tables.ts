// An application with tables of its own beside Holdfast's, in one SQLite file: what the tests of transactions begin with.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { onTestFinished } from 'vitest'
import { createHoldfast, type Duration, type Holdfast, type HoldfastOptions } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import type { SqliteStore } from '../../src/stores/sqlite/store.ts'
import { keepLines } from './open.ts'

export type Db = InstanceType<typeof Database>

export interface OwnTables {
  readonly path: string
  readonly store: SqliteStore
  /** The application's own connection. */
  readonly db: Db
  readonly open: (options?: Partial<HoldfastOptions>) => Promise<Holdfast>
  /** Another connection of the application. */
  readonly connect: () => Db
  readonly orders: () => readonly string[]
}

export async function ownTables(storageTimeout: Duration = '5s'): Promise<OwnTables> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'app.db')
  const store = await openSqliteStore({ path, driver: 'libsql', storageTimeout })
  onTestFinished(() => store.close())
  const connect = (): Db => {
    const opened = new Database(path)
    onTestFinished(() => void opened.close())
    return opened
  }
  const db = connect()
  db.exec('create table orders (id text primary key) strict')
  return {
    path,
    store,
    db,
    connect,
    async open(options = {}) {
      const holdfast = await createHoldfast({ store, logger: keepLines(), ...options })
      onTestFinished(() => holdfast.close())
      return holdfast
    },
    orders: () => (db.prepare('select id from orders order by id').all() as { id: string }[]).map(({ id }) => id),
  }
}

export function insertOrder(db: unknown, id: string): void {
  ;(db as Db).prepare('insert into orders (id) values (?)').run([id])
}

/** Retries that no test waits for. */
export const quickly = { retry: { maxAttempts: 5, initial: 1 } } as const

export async function kinds(holdfast: Holdfast, id: string): Promise<readonly string[]> {
  return (await holdfast.journal(id)).map(({ kind }) => kind)
}

/** The invariants that do not hold. */
export async function soundness(holdfast: Holdfast): Promise<readonly unknown[]> {
  return (await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)
}
