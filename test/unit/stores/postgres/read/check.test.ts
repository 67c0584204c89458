// The state invariants as SQL. Runs in all kinds of states are copied from a file into tables; each invariant is broken there
// by hand, and both must see it: the statement, and the predicate on what is read from the tables.

import Database from 'libsql'
import { Client, escapeIdentifier } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSqliteStore } from 'holdfast/sqlite'
import { checkExchange } from '../../../../../src/core/invariants/check.ts'
import type { Store, StoreAdmin } from '../../../../../src/store.ts'
import { tableInvariants } from '../../../../../src/stores/row-checks.ts'
import { createCheckQueries } from '../../../../../src/stores/postgres/read/check.ts'
import type { Dialect } from '../../../../../src/stores/postgres/dialect.ts'
import type { Execution, Row } from '../../../../../src/stores/postgres/execution.ts'
import { createFeedQueries } from '../../../../../src/stores/postgres/read/feed.ts'
import { createFindQueries } from '../../../../../src/stores/postgres/read/find.ts'
import { broadcastOf, choreOf, waitOf } from '../../../../../src/stores/postgres/schema/rows.ts'
import { createReadQueries } from '../../../../../src/stores/postgres/read/read.ts'
import { migrations } from '../../../../../src/stores/postgres/schema/schema.ts'
import { isOfData } from '../../../../../src/stores/postgres/connection/sql-state.ts'
import { checkAll, checkFeed, stateInvariants } from '../../../../../src/testing/invariants/index.ts'
import { makeCorpus, type Corpus } from '../../../../support/corpus.ts'
import { plants as plantsOfAll, type Plant } from '../../../../support/plants.ts'
import { freshSchema } from '../../../../support/postgres-shared.ts'
import { statesOf } from '../../../../support/watched-store.ts'

const plants: readonly Plant[] = [
  ...plantsOfAll,
  ['feed_complete', 'ready', `update feed set runs = array_replace(runs, ?::uuid, gen_random_uuid())`],
  ['feed_dense', 'ready', 'update sequencer set last = last + 1'],
  ['key_text_derived', 'keyed', `delete from keys where run_id = ? and type = ''`],
  ['key_text_derived', 'keyed', `delete from keys where run_id = ? and type <> ''`],
  [
    'key_text_derived',
    'succeeded',
    `insert into keys (shard, type, key, run_id) values (0, '', 'workflow idle left', ?)`,
  ],
  ['key_text_derived', 'ready', `insert into keys (shard, type, key, run_id) values (0, 'idle', 'left', ?)`],
]

let client: Client
let corpus: Corpus
let dialect: Dialect

beforeAll(async () => {
  const file = new Database(':memory:')
  corpus = await makeCorpus(async (clock) => {
    const store = await openSqliteStore({ handle: file, clock })
    await store.migrate()
    return store
  })
  const { url, schema } = await freshSchema()
  client = new Client({ connectionString: url })
  await client.connect()
  const name = escapeIdentifier(schema)
  dialect = {
    schema: name,
    feedNumber: `''`,
    now: String(corpus.clock.now()),
    shards: 1,
    skipLocked: 'skip locked',
    isSpread: false,
  }
  await client.query(`create schema ${name}`)
  for (const migration of migrations) await client.query(migration(name))
  await client.query(`set search_path to ${name}`)
  await copy(file)
  await corpus.close()
  file.close()
}, 60_000)
afterAll(() => client.end())

/** Copies the rows of a file, column by column but for those that differ. */
async function copy(file: Database.Database): Promise<void> {
  for (const table of ['runs', 'journal', 'messages', 'tags', 'sessions']) {
    for (const { priority, ...row } of file.prepare(`select * from ${table}`).all([]) as Record<string, number>[]) {
      const given = Object.entries(priority === undefined ? row : { ...row, rank: -priority })
      const values = given.map((_, index) => `$${index + 1}`)
      await client.query(
        `insert into ${table} (${given.map(([column]) => column).join(', ')}) values (${values.join(', ')})`,
        given.map(([, value]) => value),
      )
    }
  }
  await client.query(`insert into keys (shard, type, key, run_id)
    select shard, '', unique_key, id from runs where unique_key is not null and ended_at is null and deleted_at is null
    union all
    select shard, started_as, idempotency_key, id from runs where idempotency_key is not null and deleted_at is null`)
  const rows = file.prepare('select position, entries from feed order by position').all([])
  for (const [number, { position, entries }] of (rows as { position: number; entries: string }[]).entries()) {
    const ranges = JSON.parse(entries) as [string, number, number][]
    const lists = [0, 1, 2].map((at) => ranges.map((range) => range[at]))
    const sql = 'insert into feed (shard, number, position, runs, firsts, lasts) values (0, $1, $2, $3, $4, $5)'
    await client.query(sql, [number, position, ...lists])
    await client.query('update sequencer set last = $1', [position])
  }
}

type Offenders = Readonly<Record<string, readonly string[]>>

/** What is broken, and by whom, as the tables say and as the predicates say. */
async function bothWays(): Promise<{ readonly tables: Offenders; readonly predicates: Offenders }> {
  const x: Execution = {
    hints: [],
    execute: async ({ text }, values) => (await client.query<Row>(text, [...values])).rows,
  }
  const transactions = { alone: <Answer>(work: (one: Execution) => Promise<Answer>) => work(x) }
  const store = {
    find: (filter, page) => createFindQueries(dialect).find(x, filter, page),
    load: (requests) => createReadQueries(dialect).load(x, requests),
  } as Pick<Store & StoreAdmin, 'find' | 'load'> as Store & StoreAdmin
  const tables: Record<string, readonly string[]> = {}
  for (const { name, offenders } of await createCheckQueries(dialect).check(x))
    if (offenders.length > 0) tables[name] = offenders
  // A check searches nothing but Postgres itself, to the end of its transaction.
  await client.query(`set search_path to ${dialect.schema}`)
  const taken = await client.query<{ id: string; position: number; takenBy: number; runId: string }>(
    'select run_id as "runId", id, position, taken_by as "takenBy" from messages where taken_by is not null',
  )
  const states = (await statesOf(store)).map((state) => ({
    ...state,
    taken: taken.rows.filter(({ runId }) => runId === state.run.id),
  }))
  const feed = await createFeedQueries(dialect, () => 0).readChanges(
    { ...transactions, transaction: (_, work) => work(x) },
    0,
    100_000,
  )
  const waits = (await client.query<Row>('select * from waits')).rows.map(waitOf)
  const broadcasts = (await client.query<Row>('select * from broadcasts')).rows.map(broadcastOf)
  const chores = (await client.query<Row>('select * from chores')).rows.map(choreOf)
  const now = corpus.clock.now()
  const exchange = checkExchange({ waits, broadcasts, chores }, states, now)
  const predicates: Record<string, readonly string[]> = {}
  for (const { name, runId } of [...checkAll(states, now), ...exchange, ...checkFeed(feed, states)]) {
    predicates[name] = [...new Set([...(predicates[name] ?? []), runId ?? ''])].toSorted()
  }
  return { tables, predicates }
}

/** Breaks something, looks, and takes it back. */
async function planted([, special, ...statements]: Plant): ReturnType<typeof bothWays> {
  await client.query('begin')
  try {
    for (const sql of statements) {
      await client.query(sql.replaceAll('?', '$1'), sql.includes('?') ? [corpus.ids[special]] : [])
    }
    return await bothWays()
  } finally {
    await client.query('rollback')
  }
}

const ofTables = new Set<string>(tableInvariants.map(({ name }) => name))
const ofFeed = new Set(['feed_dense', 'feed_complete'])

describe('the SQL of an invariant', () => {
  it('is there for each, and for nothing else', async () => {
    const names = [...stateInvariants, ...tableInvariants].map(({ name }) => name)
    const x: Execution = { hints: [], execute: async () => [] }
    const checked = await createCheckQueries(dialect).check(x)
    expect(checked.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
    expect([...new Set(plants.map(([name]) => name))].toSorted()).toEqual(names.toSorted())
  })

  it('finds nothing in healthy tables', async () => {
    expect(await bothWays()).toEqual({ tables: {}, predicates: {} })
  })

  it.each(plants.map((plant) => [plant[0], plant[1], plant] as const))(
    'finds that %s is broken by the run that is %s',
    async (name, special, plant) => {
      const { tables, predicates } = await planted(plant)
      expect(Object.keys(tables)).toContain(name)
      if (!ofFeed.has(name)) expect(tables[name]).toContain(corpus.ids[special])
      if (name === 'nothing_without_run') return
      // Of such a run nothing else is asked.
      if (name === 'rows_well_formed') return expect(tables).toEqual({ [name]: [corpus.ids[special]] })
      const comparable = (found: Offenders): Offenders =>
        Object.fromEntries(Object.entries(found).filter(([one]) => !ofTables.has(one) && !ofFeed.has(one)))
      expect(comparable(tables)).toEqual(comparable(predicates))
      if (!ofTables.has(name) && !ofFeed.has(name)) expect(Object.keys(predicates)).toContain(name)
    },
  )
})

describe('a row of which only a parser can find that it is no JSON', () => {
  it('is found by reading all of them, and the others are checked without it', async () => {
    await client.query('begin')
    try {
      const id = corpus.ids.waiting
      await client.query(`update journal set meta = '{x}' where run_id = $1 and kind = 'waiting'`, [id])
      const x: Execution = {
        hints: [],
        execute: async ({ text }, values) => (await client.query<Row>(text, [...values])).rows,
      }
      await client.query('savepoint before')
      await expect(createCheckQueries(dialect).check(x)).rejects.toSatisfy(isOfData)
      await client.query('rollback to savepoint before')
      const damaged = await createCheckQueries(dialect).damaged(x)
      expect(damaged).toEqual([id])
      const broken = (await createCheckQueries(dialect).check(x, damaged)).filter(
        ({ offenders }) => offenders.length > 0,
      )
      expect(broken).toEqual([{ name: 'rows_well_formed', offenders: [id] }])
    } finally {
      await client.query('rollback')
    }
  })
})
