// A Postgres store whose time a test owns. Making a schema takes as long as a whole case of the contract, so schemas that
// are shaped alike are emptied and used again.

import { Pool, escapeIdentifier } from 'pg'
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { createPostgresClock, type PostgresClock } from './postgres-clock.ts'
import { freshSchema } from './postgres-shared.ts'

export type TestStoreOptions = Omit<PostgresStoreOptions, 'now' | 'schema'> & {
  /** It hears other processes, and does so already when it is given to the test. */
  readonly hears?: boolean
  /** The address of the server, if it is not the one that all test files share. `url` is the way to it. */
  readonly server?: string
  /** Told of every schema that is made, once it is migrated. */
  readonly onMade?: (schema: string) => Promise<void>
}

export interface TestStore {
  readonly store: PostgresStore
  readonly clock: PostgresClock
  readonly schema: string
  readonly url: string
}

interface Used extends Omit<TestStore, 'store'> {
  readonly writers: Pool
  readonly emptying: string
}

const writersOf = new Map<string, Pool>()
const used = new Map<string, Used[]>()

/** Opens a migrated store that is empty; its clock stands still until the test moves it. */
export async function openTestStore(options: TestStoreOptions = {}): Promise<TestStore> {
  const { hears = false, server, onMade, ...own } = options
  const shape = JSON.stringify([server, own.shards ?? 1])
  const found = used.get(shape)?.pop() ?? (await make(server, own.shards ?? 1, onMade))
  const { clock, schema, url } = found
  const store = await openPostgresStore({
    ...(own.pool === undefined ? { url } : {}),
    ...(hears ? {} : { listen: false }),
    schema,
    now: clock.expression,
    connections: 4,
    ...own,
  })
  const close = store.close.bind(store)
  let closed = false
  store.close = async () => {
    await close()
    if (closed) return
    closed = true
    await clean(found)
    await clock.set(startMs)
    used.set(shape, [...(used.get(shape) ?? []), found])
  }
  if (hears) await store.listen(() => undefined)
  return { store, clock, schema, url }
}

const startMs = 1_893_456_000_000

async function make(server: string | undefined, shards: number, onMade: TestStoreOptions['onMade']): Promise<Used> {
  const fresh = await freshSchema()
  const { schema } = fresh
  const url = server ?? fresh.url
  const writers = writersOf.get(url) ?? new Pool({ connectionString: url, max: 2, allowExitOnIdle: true })
  writersOf.set(url, writers)
  const clock = await createPostgresClock(writers, schema, startMs)
  const store = await openPostgresStore({ url, schema, shards, now: clock.expression, listen: false, connections: 2 })
  await store.migrate()
  await store.close()
  await onMade?.(schema)
  const found = await writers.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'
      and relname not in ('clock', 'migrations', 'secrets', 'settings', 'sequencer')`,
    [escapeIdentifier(schema)],
  )
  const emptying = found.rows.map(({ name }) => `delete from ${escapeIdentifier(schema)}.${escapeIdentifier(name)};`)
  return { clock, schema, url, writers, emptying: emptying.join('\n') }
}

async function clean({ writers, schema, emptying }: Used): Promise<void> {
  const name = escapeIdentifier(schema)
  await writers.query(`${emptying} update ${name}.sequencer set last = 0`)
}

/** The servers of a test file are gone before it is: lets go of connections to this one. */
export async function forgetServer(server: string): Promise<void> {
  await writersOf.get(server)?.end()
  writersOf.delete(server)
  for (const shape of used.keys()) if (shape.includes(JSON.stringify(server))) used.delete(shape)
}
