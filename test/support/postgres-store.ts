// A Postgres store whose time a test owns. Making a schema takes as long as a whole case of the contract, so schemas that
// are shaped alike are emptied and used again. So are connections where a test has hundreds of cases: to open them, and to
// plan every statement anew on each, takes a case more processor time than its own work.

import { Pool, escapeIdentifier } from 'pg'
import { openPostgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { isSpread as isSpreadOn } from '../../src/stores/postgres/schema/citus.ts'
import { connected } from '../../src/stores/postgres/schema/schema-change.ts'
import { PostgresStore, type PostgresStoreParts } from '../../src/stores/postgres/store.ts'
import { createPostgresClock, type PostgresClock } from './postgres-clock.ts'
import { freshSchema } from './postgres-shared.ts'

export type TestStoreOptions = Omit<PostgresStoreOptions, 'now' | 'schema'> & {
  /** It hears other processes, and does so already when it is given to the test. */
  readonly hears?: boolean
  /** The address of the server, if it is not the one that all test files share. `url` is the way to it. */
  readonly server?: string
  /** Called with every schema that is made, once it is migrated. */
  readonly onMade?: (schema: string) => Promise<void>
}

export interface TestStore {
  readonly store: PostgresStore
  readonly clock: PostgresClock
  readonly schema: string
  readonly url: string
  /** Removes everything from its tables, and sets its clock back. */
  readonly empty: () => Promise<void>
}

interface Used extends Omit<TestStore, 'store' | 'empty'> {
  readonly writers: Pool
  readonly emptying: readonly string[]
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
  const empty = async (): Promise<void> => {
    await clean(found)
    await clock.set(startMs)
  }
  const close = store.close.bind(store)
  let closed = false
  store.close = async () => {
    await close()
    if (closed) return
    closed = true
    await empty()
    used.set(shape, [...(used.get(shape) ?? []), found])
  }
  if (hears) await store.listen(() => undefined)
  return { store, clock, schema, url, empty }
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
  // Citus takes one statement at a time.
  const isSpread = await connected(writers, (client) => isSpreadOn(client, schema))
  return { clock, schema, url, writers, emptying: isSpread ? emptying : [emptying.join('\n')] }
}

async function clean({ writers, schema, emptying }: Used): Promise<void> {
  const name = escapeIdentifier(schema)
  for (const text of emptying) await writers.query(text)
  await writers.query(`update ${name}.sequencer set last = 0`)
}

const kept: TestStore[] = []

/**
 * Opens a test store that hears other processes, over the connections of an earlier one; all other memory of the store is
 * new. A test calls `finish` instead of `close`: it leaves the connections to the next store, unless the store was closed.
 */
export async function openOverKeptConnections(
  options: Pick<TestStoreOptions, 'onStatement'>,
): Promise<TestStore & { readonly finish: () => Promise<void> }> {
  const opened = kept.pop() ?? (await openTestStore({ ...options, hears: true }))
  const parts = Reflect.get(opened.store, 'parts') as PostgresStoreParts
  const store = new PostgresStore(parts)
  const stops: (() => void)[] = []
  const listen = store.listen.bind(store)
  store.listen = async (onHint) => {
    const stop = await listen(onHint)
    stops.push(stop)
    return stop
  }
  const close = store.close.bind(store)
  let closed = false
  store.close = () => {
    closed = true
    return close()
  }
  const finish = async (): Promise<void> => {
    if (closed) return opened.store.close()
    for (const stop of stops) stop()
    // A transaction that is still open has locks, and may write.
    await parts.database.returned()
    await opened.empty()
    kept.push(opened)
  }
  return { ...opened, store, finish }
}

/** Closes the connections that were kept. */
export async function closeKeptConnections(): Promise<void> {
  await Promise.all(kept.splice(0).map(({ store }) => store.close()))
}

/** The servers of a test file are gone before it is: lets go of connections to this one. */
export async function forgetServer(server: string): Promise<void> {
  await writersOf.get(server)?.end()
  writersOf.delete(server)
  for (const shape of used.keys()) if (shape.includes(JSON.stringify(server))) used.delete(shape)
}
