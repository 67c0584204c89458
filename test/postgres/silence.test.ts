// A network that goes away without a word: no answer, and no error either. Nobody may wait for it for ever.

import { Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { until } from '../support/until.ts'
import { holdfastAt, opened, proxied } from './proxied.ts'

const storageTimeout = '300ms'

describe('a call that the database never answers', () => {
  it.for(['blackhole', 60_000] as const)(
    'WC-S4 fails as unavailable, and its repetition is harmless (%s)',
    async (how) => {
      const { proxy, schema } = await proxied()
      const { store, bench } = await opened({ url: proxy.url, schema, storageTimeout })
      const run = bench.newRun()
      const struck = proxy.strike({ on: 'autocommit', how })
      const [first] = await Promise.allSettled([store.start([run])])
      expect(first).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } })
      expect(String((first as PromiseRejectedResult).reason)).toContain('nothing was answered for 1300 ms')
      if (how === 'blackhole') await struck
      // Whether it was done before or only now: it is created once, and this start did it.
      expect(await store.start([run])).toMatchObject([{ created: true, run: { id: run.id, seq: 1 } }])
      expect(await bench.journal(run.id)).toHaveLength(1)
      // The connection is gone, and others took its place.
      await until('the silent connection is closed', () => proxy.connections <= 4)
    },
  )

  it('in the middle of a transaction lets go of its locks, and of a pool that is the user’s', async () => {
    const { proxy, url, schema } = await proxied()
    const { bench } = await opened({ url, schema })
    const pool = new Pool({ connectionString: proxy.url, max: 2, pipeline: true })
    onTestFinished(() => pool.end())
    const { store } = await opened({ pool, schema, storageTimeout })
    const held = await bench.hold()
    const message = bench.message(held.runId)
    void proxy.strike({ on: 'commit', how: 'blackhole' })
    await expect(store.deliver([message])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    // The row was locked when all fell silent; the database has let go of it since.
    expect(await store.deliver([message])).toEqual([{ outcome: 'queued' }])
    expect(await bench.mailbox(held.runId)).toHaveLength(1)
    expect(pool.totalCount).toBeLessThanOrEqual(2)
  })
})

describe('a worker whose connections all fall silent', () => {
  it('goes on over new ones: every run ends, and no step is recorded twice', async () => {
    const { proxy, schema } = await proxied()
    const { store } = await opened({ url: proxy.url, schema, storageTimeout: '500ms' })
    let blows = 0
    const silenced = workflow('silenced', async (ctx, number: number) => {
      const first = await ctx.step('first', () => number)
      if (number % 10 === 5 && (await ctx.step('blow', () => (blows += 1))) <= 3) proxy.blackhole()
      return first + (await ctx.step('second', () => 1))
    })
    const holdfast = await holdfastAt({ store, workflows: [silenced] })
    await holdfast.work({ lease: '5s' })
    const runs = await Promise.all(Array.from({ length: 40 }, (_, number) => holdfast.start(silenced, number)))
    expect(await Promise.all(runs.map((run) => run.result({ timeout: '30s' })))).toEqual(runs.map((_, at) => at + 1))
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  }, 60_000)
})
