// Far more transactions than connections, each of two seconds, under a lease that all of them together outlast many times: no
// heartbeat comes after its session was over, none is late, and nothing is begun twice. How long that takes is printed and not
// asserted.

import { Pool } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { workflow, type HoldfastOptions } from 'holdfast'
import { openPostgresStore, type PostgresStore } from '../../src/stores/postgres/index.ts'
import { place, type Place, type Tx } from './lent.ts'
import { transactionOn } from './transaction-on.ts'

interface LockPolicy {
  readonly name: string
  readonly connections: number
  readonly open: () => Promise<
    { readonly here: Place; readonly store: PostgresStore } & Pick<HoldfastOptions, 'transaction'>
  >
}

const ways: readonly LockPolicy[] = [
  ...[undefined, 10].map((given): LockPolicy => ({
    name: `over ${given ?? 'the usual'} connections`,
    connections: given ?? 13,
    open: async () => {
      const here = await place(given === undefined ? {} : { connections: given })
      return { here, store: here.store }
    },
  })),
  {
    name: 'of a library that has the same pool of 10',
    // One of them listens.
    connections: 9,
    open: async () => {
      const here = await place({ listen: false })
      const pool = new Pool({ connectionString: here.url, max: 10, application_name: 'holdfast' })
      onTestFinished(() => pool.end())
      const store = await openPostgresStore({ pool })
      onTestFinished(() => store.close())
      const transaction = transactionOn(pool)
      return { here, store, transaction }
    },
  },
]

const leaseMs = 10_000

it.each(ways)('a hundred transactions of two seconds $name', { timeout: 180_000 }, async (way) => {
  const { name, connections } = way
  const { here, store, ...own } = await way.open()
  const beats = { all: 0, late: 0, longestGapMs: 0 }
  let answeredAt: number | null = null
  const beat = store.beat.bind(store)
  store.beat = async (request) => {
    const answer = await beat(request)
    beats.all += 1
    const gapMs = performance.now() - (answeredAt ?? performance.now())
    beats.longestGapMs = Math.max(beats.longestGapMs, Math.round(gapMs))
    answeredAt = performance.now()
    if (!answer.alive) beats.late += 1
    return answer
  }
  let begun = 0
  let now = 0
  let most = 0
  const long = workflow('long', (ctx) =>
    ctx.transaction('hold', async (tx: Tx) => {
      begun += 1
      most = Math.max(most, (now += 1))
      await tx.query('select pg_sleep(2)')
      now -= 1
    }),
  )
  const holdfast = await here.open({ store, workflows: [long], ...own })
  await holdfast.work({ lease: leaseMs })
  const began = performance.now()
  const runs = await Promise.all(Array.from({ length: 100 }, () => holdfast.start(long)))
  await Promise.all(runs.map((run) => run.result({ timeout: '150s' })))
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  console.log(`100 transactions of 2 s ${name}: ${seconds} s, ${most} at once; heartbeats:`, beats)
  expect(begun).toBe(100)
  expect(most).toBe(connections - 3)
  expect(beats.all).toBeGreaterThan(0)
  expect(beats.late).toBe(0)
  expect(beats.longestGapMs).toBeLessThan(leaseMs / 2)
  expect(here.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
  expect((await here.connections()).length).toBeLessThanOrEqual(connections + 1)
})
