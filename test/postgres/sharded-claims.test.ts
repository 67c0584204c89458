// A claim of several shards asks one after the other. What it has leased in the first ones is in nobody's hands until it answers.

import { Pool, type PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshSchema } from '../support/postgres-shared.ts'
import { connectedTo } from './lent.ts'
import { opened } from './proxied.ts'

const refusal = `do $$ begin raise exception 'canceling statement' using errcode = '57014'; end $$`

/** A pool that refuses claims of all but so many shards, once it is asked to. */
function refusingPool(url: string): { readonly pool: Pool; readonly refuseAfter: (shards: number) => void } {
  const pool = new Pool({ connectionString: url, max: 2, pipeline: true })
  onTestFinished(() => pool.end())
  let left = Number.POSITIVE_INFINITY
  pool.on('connect', (client: PoolClient) => {
    const query = client.query.bind(client) as (config: { readonly text: string }) => unknown
    client.query = ((config: { readonly text: string }) => {
      const isClaim = config.text.includes('token = run.token + 1')
      if (isClaim) left -= 1
      return query(isClaim && left < 0 ? { text: refusal } : config)
    }) as typeof client.query
  })
  return { pool, refuseAfter: (shards) => void (left = shards) }
}

describe('a claim of several shards', { timeout: 60_000 }, () => {
  it('answers what it has leased when the next shard fails, and says that there is more', async () => {
    const { url, schema } = await freshSchema()
    const { pool, refuseAfter } = refusingPool(url)
    const { bench } = await opened({ pool, schema, shards: 4 })
    // So many that no shard has none.
    await Promise.all(Array.from({ length: 100 }, () => bench.start()))
    refuseAfter(2)
    const { runs, more } = await bench.claim({ limit: 200 })
    expect(runs.length).toBeGreaterThan(0)
    expect(runs.length).toBeLessThan(100)
    expect(more).toBe(true)
    // Where nothing was leased, nobody would know of the error otherwise.
    refuseAfter(0)
    await expect(bench.claim({ limit: 200 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    refuseAfter(Number.POSITIVE_INFINITY)
    expect((await bench.claim({ limit: 200 })).runs).toHaveLength(100 - runs.length)
  })

  it('asks no further shard once it is full', async () => {
    const { url, schema } = await freshSchema()
    const shards = 64
    let claims = 0
    const onStatement = (name: string): void => void (claims += name === 'claim.lease' ? 1 : 0)
    const { bench, store } = await opened({ url, schema, shards, onStatement })
    await store.start(Array.from({ length: 1_000 }, () => bench.newRun()))
    const watcher = await connectedTo(url)
    const { rows } = await watcher.query(`select distinct shard from ${schema}.runs`)
    expect(rows).toHaveLength(shards)
    const { runs } = await bench.claim({ limit: 1 })
    expect([runs.length, claims]).toEqual([1, 1])
  })

  it('lets types take turns in each shard', async () => {
    const { url, schema } = await freshSchema()
    const { bench } = await opened({ pool: refusingPool(url).pool, schema, shards: 4 })
    const selectors = ['many', 'few'].map((type) => ({ type, version: 1 }))
    // So many that no shard has fewer than five of either.
    for (const one of selectors) await bench.store.start(Array.from({ length: 200 }, () => bench.newRun(one)))
    for (let turn = 0; turn < 4; turn += 1) {
      const { runs } = await bench.claim({ selectors, limit: 10 })
      expect(runs.map(({ type }) => type)).toEqual(Array.from({ length: 5 }, () => ['many', 'few']).flat())
    }
  })

  it('begins with any of them, so that no shard goes first everywhere', async () => {
    const { url, schema } = await freshSchema()
    const { bench } = await opened({ url, schema, shards: 8 })
    const watcher = await connectedTo(url)
    // So many that no shard is emptied by all of the claims together.
    await bench.store.start(Array.from({ length: 800 }, () => bench.newRun()))
    for (let turn = 0; turn < 32; turn += 1) expect((await bench.claim({ limit: 1 })).runs).toHaveLength(1)
    const { rows } = await watcher.query(`select distinct shard from ${schema}.runs where session is not null`)
    // Of 32 claims all would begin with the same one once in 8^31 times.
    expect(rows.length).toBeGreaterThan(1)
  })
})
