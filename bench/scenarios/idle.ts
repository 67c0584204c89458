// A worker that has nothing to do: how many statements it sends to the database a minute, `begin` and `commit` included,
// and how much of a core it takes. The worker has stood for a while when the measurement begins, so that one that asks
// less and less often has slowed down. Two workers on one file disturb each other with their heartbeats.

import { setTimeout } from 'node:timers/promises'
import { workflow } from 'holdfast'
import { openSqliteStore, type SqliteStoreOptions } from 'holdfast/sqlite'
import Database from 'libsql'
import { withHoldfast, type Reading, type Scenario } from '../scenario.ts'
import { withSqliteFile } from '../stores.ts'

const kinds = [
  { name: '1 type', types: 1, workers: 1 },
  { name: '100 types', types: 100, workers: 1 },
  { name: '100 types, 2 workers', types: 100, workers: 2 },
]

export const idle: Scenario = {
  name: 'idle',
  about: 'workers with nothing to do: statements and CPU of each',
  onlyOn: ['sqlite'],
  cases: ({ store, quick }) =>
    kinds.map(({ name, types, workers }) => ({
      name,
      isolated: true,
      samples: 1,
      // A lease takes 30 s: after that time every heartbeat and every look for dead workers has had its turn.
      sample: () => withSqliteFile(store, (path) => measure(path, types, workers, quick ? 10_000 : 30_000)),
    })),
}

/** Longer than a worker needs to reach its longest pause between two looks. */
const settlingMs = 5_000

async function measure(path: string, types: number, workers: number, ms: number): Promise<readonly Reading[]> {
  let statements = 0
  const count = (): void => void (statements += 1)
  const end = new AbortController()
  const idlers = Array.from({ length: workers }, () => beIdle(path, types, count, end.signal))
  const watched = watch()
  await Promise.race([watched, ...idlers])
  end.abort()
  await Promise.all(idlers)
  return watched

  async function watch(): Promise<readonly Reading[]> {
    await setTimeout(settlingMs)
    statements = 0
    const cpu = process.cpuUsage()
    const began = performance.now()
    await setTimeout(ms)
    const { user, system } = process.cpuUsage(cpu)
    const all = (performance.now() - began) * workers
    const most = (value: number) => ({ sqlite: { is: 'at most', value } }) as const
    return [
      {
        metric: 'statements',
        unit: 'per minute',
        value: (statements / all) * 60_000,
        goals: most(60),
        better: 'lower',
      },
      { metric: 'CPU', unit: '% of a core', value: (user + system) / all / 10, goals: most(1) },
    ]
  }
}

/** Works on a connection of its own until it is asked to end. */
async function beIdle(path: string, types: number, count: () => void, end: AbortSignal): Promise<void> {
  const workflows = Array.from({ length: types }, (_, index) => workflow(`bench.idle-${index}`, () => index))
  const database = new Database(path)
  database.exec('pragma journal_mode = wal')
  const handle = counted(database, count)
  const store = await openSqliteStore({ handle, synchronous: 'full', storageTimeout: '15s' })
  try {
    await withHoldfast(store, workflows, async (holdfast) => {
      await holdfast.work()
      await new Promise<void>((resolve) => end.addEventListener('abort', () => resolve()))
    })
  } finally {
    await store.close()
    database.close()
  }
}

/** A handle that passes everything on and reports every statement. */
function counted(database: Database.Database, count: () => void): NonNullable<SqliteStoreOptions['handle']> {
  const counting =
    <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
    (...args: Args): Result => {
      count()
      return call(...args)
    }
  return {
    prepare(sql) {
      const statement = database.prepare(sql)
      return {
        run: counting((values) => statement.run(values)),
        get: counting((values) => statement.get(values)),
        all: counting((values) => statement.all(values)),
      }
    },
    exec: counting((sql: string) => database.exec(sql)),
    pragma: counting((source: string) => database.pragma(source)),
    close: () => database.close(),
  }
}
