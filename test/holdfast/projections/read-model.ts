// A decider whose instances count, and a read model of them in the user's own tables, on SQLite and on Postgres.

import {
  decider,
  decision,
  projection,
  type ProjectionOptions,
  type Store,
  type StoreTransactions,
  type WorkedProjection,
} from '../../../src/index.ts'

export type CountInput = { readonly type: 'Add'; readonly id: string; readonly by: number }
export type CountEvent = { readonly type: 'Added'; readonly by: number } | { readonly type: 'Rounded' }

/** Every tenth of an instance is round. */
export function counterOf(type = 'counter') {
  return decider(type, {
    initial: () => 0,
    evolve: (sum, event: CountEvent) => (event.type === 'Added' ? sum + event.by : sum),
    decide: (sum, input: CountInput) => {
      const added = { type: 'Added', by: input.by } as const
      return (sum + input.by) % 10 === 0
        ? decision<CountEvent>(added, { type: 'Rounded' })
        : decision<CountEvent>(added)
    },
    id: 'id',
  })
}

type Value = string | number

/** A statement in a transaction of either database. */
export async function run(tx: unknown, sql: string, values: readonly Value[] = []): Promise<readonly Row[]> {
  const handle = tx as {
    query?: (sql: string, values: readonly Value[]) => Promise<{ readonly rows: readonly Row[] }>
    prepare: (sql: string) => {
      all: (...values: readonly Value[]) => readonly Row[]
      run: (...values: Value[]) => unknown
    }
  }
  if (handle.query !== undefined) return (await handle.query(sql, values)).rows
  const statement = handle.prepare(sql.replaceAll(/\$\d+/g, '?'))
  if (/^\s*select/i.test(sql)) return statement.all(...values)
  statement.run(...values)
  return []
}

export type Row = Readonly<Record<string, unknown>>

export function inOwn<Result>(store: Store, work: (tx: unknown) => Promise<Result>): Promise<Result> {
  return (store as Store & StoreTransactions).transact((tx) => work(tx))
}

/** The tables of a read model: a sum for each instance, and each event once. `suffix` names another set of them. */
export class OwnTables {
  private readonly prefix: string
  private readonly store: Store

  constructor(store: Store) {
    const { namespace = '' } = store.capabilities
    this.store = store
    // Beside those of the store: another test has tables of these names elsewhere in the database.
    this.prefix = namespace === '' ? '' : `"${namespace}".`
  }

  create(): Promise<void> {
    return inOwn(this.store, (tx) => this.make(tx))
  }

  async make(tx: unknown, suffix = ''): Promise<void> {
    const { prefix } = this
    await run(tx, `create table ${prefix}own_sums${suffix} (id text primary key, total integer not null)`)
    await run(
      tx,
      `create table ${prefix}own_events${suffix} (id text primary key, position integer not null, instance text not null, nth integer not null)`,
    )
  }

  async drop(tx: unknown, suffix = ''): Promise<void> {
    await run(tx, `drop table if exists ${this.prefix}own_sums${suffix}`)
    await run(tx, `drop table if exists ${this.prefix}own_events${suffix}`)
  }

  /** The tables with the suffix take the place of the others. */
  async swap(tx: unknown, suffix: string): Promise<void> {
    await this.drop(tx)
    for (const table of ['own_sums', 'own_events']) {
      await run(tx, `alter table ${this.prefix}${table}${suffix} rename to ${table}`)
    }
  }

  /** Writes an event: twice the same is an error of the primary key. */
  async write(
    tx: unknown,
    { by }: { readonly by: number },
    { id, position, instance }: { readonly id: string; readonly position: number; readonly instance: string },
    suffix = '',
  ): Promise<void> {
    const { prefix } = this
    const row = [id, position, instance]
    // Its number is that in the order in which events are written.
    const nth = `(select count(*) from ${prefix}own_events${suffix})`
    await run(
      tx,
      `insert into ${prefix}own_events${suffix} (id, position, instance, nth) values ($1, $2, $3, ${nth})`,
      row,
    )
    await run(
      tx,
      `insert into ${prefix}own_sums${suffix} as known (id, total) values ($1, $2)
      on conflict (id) do update set total = known.total + excluded.total`,
      [instance, by],
    )
  }

  async sums(suffix = ''): Promise<Readonly<Record<string, number>>> {
    const sql = `select id, total from ${this.prefix}own_sums${suffix} order by id`
    const rows = await inOwn(this.store, (tx) => run(tx, sql))
    return Object.fromEntries(rows.map(({ id, total }) => [String(id), Number(total)]))
  }

  /** The instances of the events, in the order in which they were written. */
  async instances(): Promise<readonly string[]> {
    return (await this.events()).map(({ instance }) => String(instance))
  }

  /** The events, in the order in which they were written. */
  events(suffix = ''): Promise<readonly Row[]> {
    const sql = `select id, instance from ${this.prefix}own_events${suffix} order by nth`
    return inOwn(this.store, (tx) => run(tx, sql))
  }

  projection(counter: Counter, options: Options = {}): WorkedProjection {
    return projection('sums', {
      from: counter,
      handlers: { Added: (event, tools) => this.write(tools.tx, event, tools, tools.isRebuild ? '_next' : '') },
      ...options,
    })
  }

  /** The same, which can be built anew. */
  rebuilt(counter: Counter, options: Options = {}): WorkedProjection {
    const rebuild = {
      begin: async (tx: unknown) => {
        await this.drop(tx, '_next')
        await this.make(tx, '_next')
      },
      swap: (tx: unknown) => this.swap(tx, '_next'),
    }
    return this.projection(counter, { rebuild, ...options })
  }
}

export type Counter = ReturnType<typeof counterOf>

type Options = Pick<ProjectionOptions<Counter>, 'version' | 'startAt' | 'batch' | 'maxAttempts' | 'rebuild'>
