// The same tests on every store that a test can open: several Holdfasts on a store that they share.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions, type Store, type StoreAdmin } from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { openSqliteStore } from 'holdfast/sqlite'
import { migratedSchema } from '../support/postgres-shared.ts'
import { keepLines, memoryStore } from './open.ts'

export interface SharedStore {
  /** Another Holdfast on the store: it has a connection of its own where the store has such. */
  readonly open: (options?: Partial<HoldfastOptions>) => Promise<Holdfast>
  readonly store: Store & StoreAdmin
}

async function memory(): Promise<SharedStore> {
  const store = memoryStore()
  return { store, open: (options) => opened({ ...options, store }) }
}

async function sqlite(): Promise<SharedStore> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'runs.db')
  const store = await openSqliteStore({ path })
  onTestFinished(() => store.close())
  return { store, open: (options) => opened({ ...options, store: `sqlite:${path}` }) }
}

async function postgres(): Promise<SharedStore> {
  const { url, schema } = await migratedSchema()
  const store = await openPostgresStore({ url, schema })
  onTestFinished(() => store.close())
  return { store, open: (options) => opened({ ...options, store: `${url}?schema=${schema}` }) }
}

async function opened(options: Partial<HoldfastOptions> & Pick<HoldfastOptions, 'store'>): Promise<Holdfast> {
  const holdfast = await createHoldfast({ logger: keepLines(), ...options })
  onTestFinished(() => holdfast.close())
  return holdfast
}

export const everyStore: readonly { readonly name: string; readonly make: () => Promise<SharedStore> }[] = [
  { name: 'memory', make: memory },
  { name: 'sqlite', make: sqlite },
  { name: 'postgres', make: postgres },
]
