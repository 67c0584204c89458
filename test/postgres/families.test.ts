// Workflows that wait on one another, performed by two processes' worth of workers over one Postgres: parents and children,
// signals, and what is sent to a queue. Everything ends, and the tables are sound.

import { expect, test } from 'vitest'
import { topic, workflow } from 'holdfast'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt, opened } from './proxied.ts'

const square = workflow('square', async (ctx, of: number) => ctx.step('square', () => of * of))
const sum = workflow('sum', async (ctx, of: readonly number[]) => {
  const squares = await ctx.all(of.map((one) => ctx.child(square, one)))
  return squares.reduce((total, one) => total + one, 0)
})
const jobs = topic<number>('jobs', { delivery: 'one' })
const worker = workflow('worker', async (ctx) => ctx.receive(jobs))

test('parents and children end on two workers, and each of a queue is done once', async () => {
  const { url, schema } = await migratedSchema()
  const { store } = await opened({ url, schema, listen: url })
  const { store: other } = await opened({ url, schema, listen: url })
  const workflows = [square, sum, worker]
  const here = await holdfastAt({ store, workflows })
  const there = await holdfastAt({ store: other, workflows })
  await here.work({ signals: false })
  await there.work({ signals: false })
  const sums = await Promise.all(Array.from({ length: 10 }, () => here.start(sum, [1, 2, 3, 4])))
  const workers = await Promise.all(Array.from({ length: 10 }, () => there.start(worker)))
  await Promise.all(Array.from({ length: 10 }, (_, job) => here.broadcast(jobs, job)))
  expect(await Promise.all(sums.map((run) => run.result()))).toEqual(sums.map(() => 30))
  const done = await Promise.all(workers.map((run) => run.result()))
  expect(done.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, job) => job))
  expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
}, 60_000)
