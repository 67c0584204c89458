// Claims of several types, some of whose runs cannot be had: locked by a foreign transaction, or behind a look that fails.

import { Client, Pool, type PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createContractBench, type ContractBench } from '../../src/testing/contract/index.ts'
import { openTestStore } from '../support/postgres-store.ts'

const selectorsOf = (types: number): readonly { type: string; version: number; leaseMs: null }[] =>
  Array.from({ length: types }, (_, n) => ({ type: `type ${n}`, version: 1, leaseMs: null }))

async function startMany(bench: ContractBench, type: string, count: number, priority = 0): Promise<void> {
  const runs = Array.from({ length: count }, () => bench.newRun({ type, priority }))
  for (let at = 0; at < count; at += 200) await bench.store.start(runs.slice(at, at + 200))
}

describe('claims of several types', { timeout: 120_000 }, () => {
  it.each([
    { types: 2, locked: 150 },
    { types: 20, locked: 600 },
    { types: 100, locked: 150 },
  ])('$locked locked runs of an urgent one do not stop those of $types types', async ({ types, locked }) => {
    const { store, clock, schema, url } = await openTestStore({})
    onTestFinished(() => store.close())
    const bench = createContractBench({ store, clock, near: true })
    await bench.beat('s1')
    await startMany(bench, 'type 0', locked, 10)
    for (let n = 1; n < types; n += 1) await bench.start({ type: `type ${n}` })
    const stranger = new Client({ connectionString: url })
    await stranger.connect()
    onTestFinished(() => stranger.end())
    await stranger.query('begin')
    await stranger.query(`select id from ${schema}.runs where type = 'type 0' for update`)
    const selectors = selectorsOf(types)
    const claimed = new Set<string>()
    for (let left = types; left > 0; left -= 1) {
      const { runs } = await store.claim({ session: 's1', selectors, limit: 10 })
      for (const { type } of runs) claimed.add(type)
    }
    await stranger.query('rollback')
    expect(claimed.size).toBe(types - 1)
  })

  it('a second look that fails does not cost what the first one has leased, also over a lent pool', async () => {
    const { url, store: own } = await openTestStore({})
    await own.close()
    const pool = new Pool({ connectionString: url, max: 5 })
    /** Which look of the next claim fails; null for none. */
    let failing: number | null = null
    let looks = 0
    pool.on('connect', (client: PoolClient) => {
      const query = client.query.bind(client) as (config: { text: string }) => unknown
      const spied = (config: { text: string }): unknown => {
        const isLook = config.text.includes('horizon as materialized')
        if (isLook) looks += 1
        if (!isLook || looks !== failing) return query(config)
        return query({ text: `do $$ begin raise exception 'cancelled' using errcode = '57014'; end $$` })
      }
      Object.assign(client, { query: spied })
    })
    const { store, clock } = await openTestStore({ pool })
    onTestFinished(async () => {
      await store.close()
      await pool.end()
    })
    const bench = createContractBench({ store, clock, near: true })
    const selectors = selectorsOf(50)
    await bench.beat('s1')
    // The store learns that fifty types have ready runs: each gets a small share of a look.
    for (const { type } of selectors) await bench.start({ type })
    await store.claim({ session: 's1', selectors, limit: 50 })
    await startMany(bench, 'type 0', 40)
    looks = 0
    failing = 2
    const { runs } = await store.claim({ session: 's1', selectors, limit: 20 })
    expect(looks).toBe(2)
    expect(runs.length).toBeGreaterThan(0)
    failing = null
    const held = await store.get(runs.map(({ id }) => id))
    expect(held.map((run) => run?.session)).toEqual(runs.map(() => 's1'))
  })
})
