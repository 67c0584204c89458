// The state invariants as SQL. Each is broken in a file by hand, and both must see it: the statement, and the predicate on
// what is read from the file.

import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import { tableInvariants } from '../../../../../src/stores/row-checks.ts'
import { checkQuery, checkTables, checks } from '../../../../../src/stores/sqlite/read/check.ts'
import { Connection } from '../../../../../src/stores/sqlite/driver/connection.ts'
import { overLibsql } from '../../../../../src/stores/sqlite/driver/libsql.ts'
import { broadcastOf, choreOf, waitOf } from '../../../../../src/stores/sqlite/schema/rows.ts'
import { nowExpression } from '../../../../../src/stores/sqlite/driver/settings.ts'
import { checkAll, checkExchange, checkFeed, stateInvariants } from '../../../../../src/testing/invariants/index.ts'
import { makeCorpus, type Corpus } from '../../../../support/corpus.ts'
import { plants as plantsOfAll, type Plant } from '../../../../support/plants.ts'
import { statesOf } from '../../../../support/watched-store.ts'
import { temporaryPaths } from '../folder.ts'

const nextPath = temporaryPaths()
const database = new Database(':memory:')
const connection = new Connection(overLibsql(database))
let corpus: Corpus

beforeAll(async () => {
  corpus = await makeCorpus(async (clock) => {
    const store = await openSqliteStore({ handle: database, clock })
    await store.migrate()
    return store
  })
}, 60_000)
afterAll(async () => {
  await corpus.close()
  database.close()
})

const plants: readonly Plant[] = [
  ...plantsOfAll,
  ['feed_complete', 'ready', `update feed set entries = replace(entries, ?, 'another run')`],
]

interface Step {
  readonly id: number
  readonly parent: number
  readonly detail: string
}

/** Tables that are walked from end to end inside a loop: second in a join, or in a subquery that is asked for each row. */
function walkedAnew(plan: readonly Step[]): readonly string[] {
  const isCorrelated = ({ parent }: Step): boolean => {
    const above = plan.find(({ id }) => id === parent)
    if (above === undefined || above.detail.startsWith('MATERIALIZE')) return false
    return /CORRELATED/.test(above.detail) || isCorrelated(above)
  }
  // Every key begins with the shard, and there is one: a search by that alone walks the table.
  const isWalk = ({ detail }: Step): boolean =>
    /\(shard=\?\)/.test(detail) || (detail.startsWith('SCAN ') && !/ VIRTUAL TABLE|^SCAN (d|dropped)$/.test(detail))
  return plan.flatMap((step, index) => {
    const isJoined = ({ parent, detail }: Step): boolean => parent === step.parent && /^(SCAN|SEARCH)/.test(detail)
    const isInner = plan.slice(0, index).some(isJoined)
    return isWalk(step) && (isInner || isCorrelated(step)) ? [step.detail] : []
  })
}

type Offenders = Readonly<Record<string, readonly string[]>>

/** What is broken, and by whom, as the tables say and as the predicates say. */
async function bothWays(): Promise<{ readonly tables: Offenders; readonly predicates: Offenders }> {
  const now = corpus.clock.now()
  const tables: Record<string, readonly string[]> = {}
  for (const { name, offenders } of checkTables(connection, corpus.clock))
    if (offenders.length > 0) tables[name] = offenders
  const takenSql = 'select id, position, taken_by as takenBy from messages where run_id = ? and taken_by is not null'
  const taken = (id: string) =>
    database.prepare(takenSql).all([id]) as { id: string; position: number; takenBy: number }[]
  const states = (await statesOf(corpus.store)).map((state) => ({ ...state, taken: taken(state.run.id) }))
  const feed = await corpus.store.changes(0, 100_000)
  const predicates: Record<string, readonly string[]> = {}
  const exchange = {
    waits: connection.all('select * from waits', []).map(waitOf),
    broadcasts: connection.all('select * from broadcasts', []).map(broadcastOf),
    chores: connection.all('select * from chores', []).map(choreOf),
  }
  const violations = [...checkAll(states, now), ...checkExchange(exchange, states, now), ...checkFeed(feed, states)]
  for (const { name, runId } of violations) {
    predicates[name] = [...new Set([...(predicates[name] ?? []), runId ?? ''])].toSorted()
  }
  return { tables, predicates }
}

/** Breaks something, looks, and takes it back. */
async function planted([, special, ...statements]: Plant): ReturnType<typeof bothWays> {
  database.exec('begin')
  try {
    for (const sql of statements) {
      database.prepare(sql).run(sql.includes('?') ? [corpus.ids[special]] : [])
    }
    return await bothWays()
  } finally {
    database.exec('rollback')
  }
}

const ofTables = new Set<string>(tableInvariants.map(({ name }) => name))
const ofFeed = new Set(['feed_dense', 'feed_complete'])

describe('the SQL of an invariant', () => {
  it('is there for each, and for nothing else', () => {
    const names = [...stateInvariants, ...tableInvariants].map(({ name }) => name)
    expect(Object.keys(checks).toSorted()).toEqual(names.toSorted())
    expect([...new Set(plants.map(([name]) => name))].toSorted()).toEqual(names.toSorted())
  })

  it('finds nothing in a healthy file', async () => {
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
      if (!ofTables.has(name)) expect(Object.keys(predicates)).toContain(name)
    },
  )

  it.each(Object.entries(checks))('%s walks no table anew for each row of another', (_, sql) => {
    const statement = `explain query plan ${checkQuery(sql.replaceAll(':now', '1'))}`
    const plan = database.prepare(statement).all([]) as unknown as Step[]
    expect(walkedAnew(plan)).toEqual([])
  })
})

describe('a check of a file that others write to', () => {
  it('takes nothing for early that became due while it was under way', async () => {
    const path = nextPath()
    const handle = new Database(path)
    const other = new Database(path)
    onTestFinished(() => [handle, other].forEach((one) => one.close()))
    const store = await openSqliteStore({ handle })
    const holdfast = await createHoldfast({ store, workflows: [workflow('t.check', () => undefined)] })
    await holdfast.start('t.check')
    const prepare = handle.prepare.bind(handle)
    let isUnderWay = false
    handle.prepare = (sql) => {
      if (!isUnderWay && sql.startsWith('select distinct id')) {
        isUnderWay = true
        for (const began = Date.now(); Date.now() <= began + 2;);
        // As a delivery does it: the run is to be claimed at once.
        expect(other.prepare(`update runs set due = ${nowExpression}`).run([]).changes).toBe(1)
      }
      return prepare(sql)
    }
    const checked = await holdfast.doctor()
    expect(isUnderWay).toBe(true)
    expect(checked.filter(({ offenders }) => offenders.length > 0)).toEqual([])
    await holdfast.close()
  })
})
