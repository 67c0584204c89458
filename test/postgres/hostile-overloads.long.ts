// A role that may create in `public` can put operators and functions there whose types fit a statement better than those of
// Postgres itself, and so have their code run as the worker. Here the whole contract runs among such traps: over connections of
// our own, over a pool of the user's with the search path that every role has, and inside transactions of the user's.

import { Client, Pool, type ClientConfig } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openPostgresStore, type PostgresStore } from 'holdfast/postgres'
import type { TransactionStore } from '../../src/store.ts'
import { installPostgres } from '../../src/stores/postgres/schema/install.ts'
import { viewNames, viewSchema } from '../../src/stores/postgres/views.ts'
import { createContractBench, storeContract } from '../../src/testing/contract/index.ts'
import { runContract } from '../contract/run-contract.ts'
import { hostileDatabase } from '../support/hostile-overloads.ts'
import { openTestStore } from '../support/postgres-store.ts'

let url = ''
beforeAll(async () => {
  url = await hostileDatabase()
}, 120_000)

/** Everything that was asked on a connection of the user's. */
const sent = new Set<string>()

class WatchedClient extends Client {
  constructor(config?: string | ClientConfig) {
    super(config)
    const query = this.query.bind(this) as (...given: readonly unknown[]) => unknown
    this.query = ((...given: readonly unknown[]) => {
      const [first] = given
      sent.add(typeof first === 'string' ? first : (first as { readonly text: string }).text)
      return query(...given)
    }) as never
  }
}

function theirPool(max: number): Pool {
  return new Pool({ connectionString: url, max, pipeline: true, allowExitOnIdle: true, Client: WatchedClient })
}

async function execute(...statements: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    let rows: readonly Readonly<Record<string, unknown>>[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows as typeof rows
    return rows
  } finally {
    await client.end()
  }
}

describe('a trap', () => {
  it.each([
    ['an operator of mixed types', 'select 1::bigint + 1::numeric'],
    ['an operator whose other side is a literal', `select '{}'::json ->> '1'`],
    ['a function that takes anything', `select array_agg(gen_random_uuid()) from pg_class`],
    ['a function of a literal', `select nextval('some.sequence')`],
  ])('is sprung by %s, if a statement says no more than that', async (_what, sql) => {
    await expect(execute(sql)).rejects.toThrow(/a trap ran|array_agg/)
  })
})

runContract('Postgres with hostile overloads in public, by its address,', async () =>
  openTestStore({ server: url, hears: true }),
)

describe('Postgres with hostile overloads in public, inside using(tx), keeps the contract of every store', () => {
  const pools: Pool[] = []
  afterAll(async () => void (await Promise.all(pools.map((pool) => pool.end()))))

  // What counts on a process that hears of its own doings at once does not go for transactions that another client commits; and
  // what is slow by itself takes minutes in a transaction for every call, by the same statements.
  const cases = storeContract
    .filter(({ near = false, slow = false }) => !near && !slow)
    .map((one) => [one.name, one] as const)
  it.for(cases)('%s', { timeout: 120_000 }, async ([, { run }]) => {
    // A pool that lends to one another what the other waits for would stand still.
    while (pools.length < 2) pools.push(theirPool(20))
    const [lent, others] = pools as [Pool, Pool]
    const { store, clock } = await openTestStore({ server: url, hears: true, pool: lent })
    try {
      await run(createContractBench({ store: inTheirTransactions(store, others), clock }))
    } finally {
      await store.close()
    }
  })
})

/** The same store, of which each call that can be made in a transaction of the user's is made in one. */
function inTheirTransactions(store: PostgresStore, pool: Pool): PostgresStore {
  const inside = async <Answer>(work: (within: TransactionStore) => Promise<Answer>): Promise<Answer> => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const answer = await work(store.inTransaction(client))
      await client.query('commit')
      return answer
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  const calls: Partial<PostgresStore> = {
    // Nobody begins to perform a run in a transaction that is not committed yet.
    start: (runs, options) =>
      runs.some(({ lease }) => lease !== null) ? store.start(runs, options) : inside((within) => within.start(runs)),
    commit: (transitions) => inside((within) => within.commit(transitions)),
    deliver: (messages) => inside((within) => within.deliver(messages)),
    control: (requests) => inside((within) => within.control(requests)),
    load: (requests, mostBytes) => inside((within) => within.load(requests, mostBytes)),
  }
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(calls, key) ?? Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

describe('hostile overloads in public', () => {
  it(
    'are not picked by a migration, by views of any design, or by a role that reads those',
    { timeout: 60_000 },
    async () => {
      await installPostgres({ url, schema: 'views', views: viewNames })
      const views = await execute(
        `select schemaname, viewname from pg_views where schemaname = any('{${viewNames.map((name) => viewSchema('views', name)).join(',')}}')`,
      )
      expect(views.length).toBeGreaterThan(10)
      for (const { schemaname, viewname } of views)
        await execute(`select * from ${String(schemaname)}.${String(viewname)}`)
    },
  )

  it('are not picked by the doctor, which works under the settings of the user', async () => {
    const store = await openPostgresStore({ url, schema: 'doctor', listen: false })
    onTestFinished(() => store.close())
    await store.migrate()
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('are picked by none of the statements that the contract has sent, also in what was never executed of them', async () => {
    const statements = [...sent].filter((text) => /\$1\b/.test(text))
    expect(statements.length).toBeGreaterThan(60)
    await execute('create schema looked')
    const found: string[] = []
    for (const [index, text] of statements.entries()) {
      // What a function of SQL does is analysed when it is made, and all that it takes from elsewhere is written down.
      const typed = Array.from({ length: highest(text) }, (_, place) => typeOf(text, place + 1))
      const body = `create function looked.at_${index}(${typed.join(', ')}) returns void begin atomic ${text}; end`
      const [row] = await execute(
        body,
        `select count(*)::integer as count from pg_depend where classid = 'pg_proc'::regclass
          and objid = (select oid from pg_proc where proname = 'at_${index}')
          and refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)`,
      )
      if (row?.['count'] !== 0) found.push(text)
    }
    expect(found).toEqual([])
  })
})

function highest(text: string): number {
  return Math.max(...Array.from(text.matchAll(/\$([0-9]+)/g), ([, place]) => Number(place)))
}

/** Every parameter is cast where it stands. */
function typeOf(text: string, place: number): string {
  return new RegExp(`\\$${place}::([a-z]+)`).exec(text)?.[1] ?? `(parameter ${place} has no type)`
}

describe('a pool whose search path puts another schema before pg_catalog', () => {
  it('is refused: there, everything that has the name of something in Postgres comes first', async () => {
    const pool = new Pool({ connectionString: url, options: '-c search_path=public,pg_catalog' })
    onTestFinished(() => pool.end())
    await expect(openPostgresStore({ pool })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('pg_catalog first') as string,
    })
  })

  it.each(['"$user", public', 'pg_catalog,public', '"", "a,b"', 'PG_CATALOG, public'])(
    'but not one of %s',
    async (path) => {
      const escaped = path.replaceAll(' ', '\\ ')
      const pool = new Pool({ connectionString: url, options: `-c search_path=${escaped}` })
      onTestFinished(() => pool.end())
      const store = await openPostgresStore({ pool, listen: false, schema: 'pooled' })
      await store.close()
    },
  )
})
