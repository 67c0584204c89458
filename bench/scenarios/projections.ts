// Projections: how fast a read model follows the events that are there, in a table of Holdfast's own making and with a handler that
// sends a statement for each event, how much memory a rebuild takes, and what writers lose while one follows them.

import { projection, tableProjection, type Holdfast, type Store, type WorkedProjection } from 'holdfast'
import { counter, executeAll } from '../counter.ts'
import { withHoldfast, type Goals, type Reading, type Scenario, type Settings } from '../scenario.ts'
import { withStore } from '../stores.ts'

const instances = 1_000
const callers = 500
const columns = { count: 'integer' } as const

const eventsPerSecond: Goals = {
  postgres: { is: 'at least', value: 20_000 },
  sqlite: { is: 'at least', value: 30_000 },
}
const mostLost: Goals = { postgres: { is: 'at most', value: 5 }, sqlite: { is: 'at most', value: 5 } }

export const projections: Scenario = {
  name: 'projections',
  about: 'events into a SQL table, a rebuild, and what a projection costs those who write',
  onlyOn: ['sqlite', 'postgres'],
  cases(settings) {
    return [
      { name: 'a row for each instance', isolated: true, sample: () => following(settings, tableOf) },
      { name: 'a statement for each event', isolated: true, sample: () => following(settings, statementsOf) },
      { name: 'rebuild', isolated: true, samples: 1, sample: () => rebuilding(settings) },
      { name: 'writers', isolated: true, sample: () => writing(settings) },
    ]
  },
}

interface Client {
  query(sql: string, values?: readonly unknown[]): Promise<unknown>
  prepare(sql: string): { run(...values: readonly unknown[]): unknown }
}

/** A place for the table, beside those of the store. */
function placeOf({ capabilities: { namespace = '' } }: Store): { readonly schema?: string } {
  return namespace === '' ? {} : { schema: namespace }
}

function tableOf(store: Store) {
  return tableProjection('bench', {
    from: counter,
    table: 'bench_counts',
    ...placeOf(store),
    columns,
    handlers: { Counted: ({ count }) => ({ count: (count ?? 0) + 1 }) },
  })
}

function statementsOf(store: Store): WorkedProjection {
  const { schema } = placeOf(store)
  const table = schema === undefined ? 'bench_counts' : `"${schema}".bench_counts`
  const sql = (first: string, second: string, third: string): string =>
    `insert into ${table} as known (id, count, position, at) values (${first}, 1, ${second}, ${third})
    on conflict (id) do update set count = known.count + 1, position = excluded.position, at = excluded.at`
  return projection('bench', {
    from: counter,
    handlers: {
      Counted: (_event, { tx, instance, position, at }) => {
        const handle = tx as Client
        const values = [instance, position, at.toISOString()]
        return schema === undefined
          ? handle.prepare(sql('?', '?', '?')).run(...values)
          : handle.query(sql('$1', '$2', '$3'), values)
      },
    },
  })
}

/** Creates the table with the transactions of the store. */
async function create(store: Store, holdfast: Holdfast): Promise<void> {
  const table = tableOf(store)
  const making = projection('making', {
    from: counter,
    handle: () => undefined,
    rebuild: {
      begin: async (tx) => {
        const handle = tx as Client
        if (store.capabilities.namespace === undefined) handle.prepare(table.createTable).run()
        else await handle.query(table.createTable)
      },
      swap: () => undefined,
    },
  })
  const running = await holdfast.project(making, { auto: false })
  await running.tick()
  await holdfast.projections.rebuild(making)
  await running.tick()
  await running.stop()
}

function fill(holdfast: Holdfast, inputs: number): Promise<void> {
  return executeAll(holdfast, { inputs, callers, idOf: (nth) => `${nth % instances}` })
}

function following(
  { store: address, quick }: Settings,
  define: (store: Store) => WorkedProjection,
): Promise<readonly Reading[]> {
  const events = quick ? 20_000 : 100_000
  return withStore(address, (store) =>
    withHoldfast(store, [counter], async (holdfast) => {
      await create(store, holdfast)
      await fill(holdfast, events)
      const running = await holdfast.project(define(store), { auto: false })
      const began = performance.now()
      await running.tick()
      const ms = performance.now() - began
      return [{ metric: 'events', unit: 'events/s', value: (events / ms) * 1_000, goals: eventsPerSecond }]
    }),
  )
}

function rebuilding({ store: address, quick }: Settings): Promise<readonly Reading[]> {
  const events = quick ? 50_000 : 1_000_000
  return withStore(address, (store) =>
    withHoldfast(store, [counter], async (holdfast) => {
      await create(store, holdfast)
      const table = tableOf(store)
      await fill(holdfast, events)
      const running = await holdfast.project(table, { auto: false })
      await running.tick()
      await holdfast.projections.rebuild(table)
      const before = process.memoryUsage.rss()
      const began = performance.now()
      await running.tick()
      const ms = performance.now() - began
      const [view] = (await holdfast.projections.list()).filter(({ name }) => name === table.name)
      if (view === undefined || view.rebuild !== null) throw new Error('The rebuild is not live')
      const seconds = (ms / 1_000) * (1_000_000 / events)
      return [
        { metric: 'of 1,000,000 events', unit: 's', value: seconds, goals: atMostOfBoth(60) },
        { metric: 'memory gained', unit: 'MB', value: (process.memoryUsage.rss() - before) / 1024 / 1024 },
      ]
    }),
  )
}

/** With and without a projection in turns, so that both see the same machine. */
function writing({ store: address, quick }: Settings): Promise<readonly Reading[]> {
  const [rounds, inputs] = [quick ? 4 : 8, 5_000]
  return withStore(address, (store) =>
    withHoldfast(store, [counter], async (holdfast) => {
      await create(store, holdfast)
      await fill(holdfast, inputs)
      const ms = { alone: 0, followed: 0 }
      for (let round = 0; round < rounds; round += 1) {
        const turns = round % 2 === 0 ? (['alone', 'followed'] as const) : (['followed', 'alone'] as const)
        for (const turn of turns) {
          const running = await holdfast.project(tableOf(store), { auto: false })
          await running.tick()
          await running.stop()
          const following = turn === 'followed' ? await holdfast.project(tableOf(store)) : null
          const began = performance.now()
          await fill(holdfast, inputs)
          ms[turn] += performance.now() - began
          await following?.stop()
        }
      }
      const [alone, followed] = [ms.alone, ms.followed].map((took) => ((rounds * inputs) / took) * 1_000)
      if (alone === undefined || followed === undefined) throw new Error('Nothing was measured')
      return [
        { metric: 'inputs alone', unit: 'inputs/s', value: alone },
        { metric: 'inputs with one', unit: 'inputs/s', value: followed },
        { metric: 'lost', unit: '%', value: 100 * (1 - followed / alone), goals: mostLost },
      ]
    }),
  )
}

function atMostOfBoth(value: number): Goals {
  return { postgres: { is: 'at most', value }, sqlite: { is: 'at most', value } }
}
