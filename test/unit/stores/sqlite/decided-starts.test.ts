// Starts whose first input is decided: what SQLite is asked grows as their number does, and not faster.

import Database from 'libsql'
import { expect, it, onTestFinished } from 'vitest'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench } from '../../../../src/testing/contract/index.ts'
import { ending } from '../../../../src/testing/contract/drafts.ts'
import { decidedRun } from '../../../../src/testing/contract/unheld.ts'
import { outbound } from '../../../../src/testing/contract/exchanges.ts'

async function open() {
  const database = new Database(':memory:')
  onTestFinished(() => void database.close())
  let bound = 0
  const count = (values: unknown): unknown => {
    bound += JSON.stringify(values).length
    return values
  }
  const handle = {
    prepare(sql: string) {
      const statement = database.prepare(sql)
      return {
        run: (values: unknown) => statement.run(count(values)),
        get: (values: unknown) => statement.get(count(values)),
        all: (values: unknown) => statement.all(count(values)),
      }
    },
    exec: (sql: string) => database.exec(sql),
    pragma: (source: string) => database.pragma(source),
    close: () => database.close(),
  }
  const clock = createVirtualClock()
  const store = await openSqliteStore({ handle, clock })
  await store.migrate()
  const boundBy = async (work: () => Promise<unknown>): Promise<number> => {
    bound = 0
    await work()
    return bound
  }
  return { store, bench: createContractBench({ store, clock }), boundBy }
}

it('each reads again only what it has touched itself', async () => {
  const { store, bench, boundBy } = await open()
  const startMany = (most: number): Promise<number> => {
    const given = Array.from({ length: most }, () =>
      decidedRun(bench, {}, { key: bench.unique('key'), idempotencyKey: bench.unique('start') }),
    )
    return boundBy(() => store.start(given))
  }
  const few = await startMany(20)
  expect(await startMany(160)).toBeLessThan(few * 10)
})

it('the next ones find the keys that it has freed, and those that its children have taken', async () => {
  const { store, bench } = await open()
  const ended = decidedRun(bench, { append: [ending('succeeded')], status: 'succeeded' }, { key: 'freed' })
  const parent = decidedRun(bench)
  const child = bench.child(parent.id, { key: 'taken', idempotencyKey: 'child' })
  const follows = { ...parent.decided, outbound: outbound({ starts: [child] }) } as NonNullable<typeof parent.decided>
  const answers = await store.start([
    ended,
    bench.newRun({ key: 'freed' }),
    { ...parent, decided: follows },
    bench.newRun({ key: 'taken' }),
    bench.newRun({ idempotencyKey: 'child' }),
    bench.newRun({ id: child.run.id }),
  ])
  expect(answers.map(({ taken }) => taken)).toEqual([null, null, null, 'key', 'idempotency-key', 'id'])
  expect(answers.slice(3).map(({ run }) => run.id)).toEqual([child.run.id, child.run.id, child.run.id])
})
