// A Postgres store on one connection that has every statement explained before it is executed: with the parameters that are
// really sent, with the settings that really hold, and undone again, so that the statement itself finds what the plan found.

import { Client, escapeIdentifier, escapeLiteral } from 'pg'
import { Database, type ClientLike, type PoolLike } from '../../src/stores/postgres/connection/database.ts'
import { databaseClock } from '../../src/stores/postgres/dialect.ts'
import type { Row, DetailedHint, Value } from '../../src/stores/postgres/execution.ts'
import { settingsFor, settingsSql } from '../../src/stores/postgres/connection/pool.ts'
import { quoteSchema, quoteText } from '../../src/stores/postgres/schema/schema-name.ts'
import { PostgresStore } from '../../src/stores/postgres/store.ts'
import { effortOf, type Effort, type PlanNode } from './plan.ts'

export interface Explained extends Effort {
  /** Its places in the statement plan. */
  readonly name: string
  readonly text: string
  readonly plan: PlanNode
}

export interface ExplainedStoreOptions {
  readonly url: string
  readonly schema: string
  /** As connections of our own have the settings: from their start; or as those of a user's pool do: in every transaction. */
  readonly pool: 'own' | 'lent'
  /** `generic`: one plan for all parameters, made when a statement is first sent, and kept. */
  readonly plans: 'auto' | 'generic'
  /** The clock of this process. */
  readonly monotonic: () => number
}

export interface ExplainedStore {
  readonly store: PostgresStore
  /** What the statements of a call cost, one after the other. */
  explain(call: () => Promise<unknown>): Promise<readonly Explained[]>
}

type Query = Parameters<ClientLike['query']>[0]

export async function openExplainedStore(options: ExplainedStoreOptions): Promise<ExplainedStore> {
  const { url, schema, pool, plans, monotonic } = options
  const settings = settingsFor(60_000, 'shortly')
  const flags = {
    ...(pool === 'own' ? settings : {}),
    ...(plans === 'generic' ? { plan_cache_mode: 'force_generic_plan' } : {}),
  }
  const words = Object.entries(flags).map(([name, value]) => `-c ${name}=${value}`)
  const client = new Client({ connectionString: url, options: words.join(' ') })
  await client.connect()
  const tap = new Tap(client)
  let notice: (hints: readonly DetailedHint[]) => void = () => undefined
  const database = new Database({
    pool: tap,
    settings: pool === 'own' ? null : settingsSql(settings),
    theirSettings: null,
    ourSettings: settingsSql(settings),
    random: () => 0.5,
    monotonic,
    storageMs: 60_000,
    onStatement: (name) => {
      // The end of a transaction belongs to no statement that could be explained.
      if (!name.endsWith('commit')) tap.names.push(name)
    },
    onHints: (hints) => notice(hints),
  })
  const store = new PostgresStore({
    namespace: schema,
    database,
    dialect: {
      schema: quoteSchema(schema),
      feedNumber: `${quoteText(`${quoteSchema(schema)}.feed_number`)}::regclass`,
      now: databaseClock,
      shards: 1,
      skipLocked: 'skip locked',
      isSpread: false,
    },
    monotonic,
    random: () => 0,
    migrate: () => Promise.resolve(),
    tokenKey: () => Promise.resolve('nobody issues tokens here'),
    hints: {
      hears: false,
      notifyInTransaction: null,
      listen: () => Promise.resolve(() => undefined),
      attend: (attend) => (notice = attend),
      expectEnds: () => false,
    },
    onClose: () => client.end(),
  })
  return {
    store,
    async explain(call) {
      tap.seen.length = 0
      await call()
      return [...tap.seen]
    },
  }
}

/** The pool of one connection. Statements that the store prepares are explained; the rest passes. */
class Tap implements PoolLike, ClientLike {
  /** Called just before the statement itself. */
  readonly names: string[] = []
  readonly seen: Explained[] = []
  private readonly client: Client
  private readonly prepared = new Set<string>()
  private isInside = false

  constructor(client: Client) {
    this.client = client
  }

  connect(): Promise<ClientLike> {
    return Promise.resolve(this)
  }

  release(): void {
    this.isInside = false
  }

  async end(): Promise<void> {
    await this.client.end()
  }

  async query(config: Query): ReturnType<ClientLike['query']> {
    const { text, name, values = [] } = config
    const names = this.names.splice(0).join(' ')
    if (text === 'begin') this.isInside = true
    if (text === 'commit' || text === 'rollback') this.isInside = false
    if (name !== undefined) await this.explain(names, { text, name, values })
    return this.client.query<Row>(config as Parameters<Client['query']>[0] & { text: string })
  }

  private async explain(
    names: string,
    { text, name, values }: { readonly text: string; readonly name: string; readonly values: readonly Value[] },
  ): Promise<void> {
    const own = escapeIdentifier(`explained-${name}`)
    if (!this.prepared.has(name)) await this.client.query(`prepare ${own} as ${text}`)
    this.prepared.add(name)
    const given = values.map((value) => (typeof value === 'string' ? escapeLiteral(value) : String(value)))
    await this.client.query(this.isInside ? 'savepoint explained' : 'begin')
    const { rows } = await this.client.query<{ 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }] }>(
      `explain (analyze, buffers, timing off, format json) execute ${own}(${given.join(', ')})`,
    )
    await this.client.query(this.isInside ? 'rollback to savepoint explained' : 'rollback')
    const plan = rows[0]?.['QUERY PLAN'][0].Plan
    if (plan === undefined) throw new Error('EXPLAIN shows no plan.')
    this.seen.push({ name: names === '' ? firstWords(text) : names, text, plan, ...effortOf(plan) })
  }
}

/** What has no place in the statement plan. */
function firstWords(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ').slice(0, 60)
}
