// What the tests of lent connections begin with: a database of their own, so that all that is connected to it is theirs.

import { Client } from 'pg'
import { expect, onTestFinished } from 'vitest'
import { workflow, type Context, type Holdfast, type HoldfastOptions } from 'holdfast'
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { keepLines } from '../holdfast/open.ts'
import { freshDatabase } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

/** What a function gets as its transaction. */
export interface Tx {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>
}

export interface Place {
  readonly url: string
  /** A connection of the application, which has the table `accounts (id, balance)`. */
  readonly client: Client
  readonly store: PostgresStore
  readonly lines: ReturnType<typeof keepLines>['lines']
  readonly open: (options: Partial<HoldfastOptions>) => Promise<Holdfast>
  /** The connections of the store, but for the one that listens. */
  readonly connections: () => Promise<readonly Connection[]>
  readonly balances: () => Promise<Readonly<Record<string, number>>>
}

export interface Connection {
  readonly state: string
  readonly query: string
  readonly wait: string | null
}

export async function place(options: Partial<PostgresStoreOptions> = {}): Promise<Place> {
  const url = await freshDatabase()
  const client = await connectedTo(url)
  await client.query(`
    create table accounts (id text primary key, balance integer not null);
    insert into accounts values ('a', 0), ('b', 0)`)
  const store = await openPostgresStore({ ...(options.pool === undefined ? { url } : {}), ...options })
  onTestFinished(() => store.close())
  await store.migrate()
  const logger = keepLines()
  return {
    url,
    client,
    store,
    lines: logger.lines,
    open: (given) => holdfastAt({ store, logger, ...given }),
    async connections() {
      const { rows } = await client.query<Connection>(
        `select state, query, wait_event_type as wait from pg_stat_activity
        where datname = current_database() and application_name = 'holdfast'`,
      )
      return rows
    },
    async balances() {
      const { rows } = await client.query<{ id: string; balance: number }>(
        'select id, balance from accounts order by id',
      )
      return Object.fromEntries(rows.map(({ id, balance }) => [id, balance]))
    },
  }
}

export async function connectedTo(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

export const never = (): Promise<never> => new Promise(() => undefined)

export const once = { retry: 'none' } as const

/** Performs one transaction in a run, and gives back what came of it. */
export async function perform(
  here: Place,
  work: (tx: Tx, ctx: Context) => Promise<unknown>,
  options: Partial<HoldfastOptions> = {},
): Promise<{ readonly result: unknown; readonly kinds: readonly string[] }> {
  const flow = workflow('flow', (ctx) => ctx.transaction('write', (tx: Tx) => work(tx, ctx), once))
  const holdfast = await here.open({ workflows: [flow], ...options })
  await holdfast.work()
  const run = await holdfast.start(flow)
  const result = await run.result().catch((error: unknown) => error)
  expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  return { result, kinds: (await holdfast.journal(run)).map(({ kind }) => kind) }
}
