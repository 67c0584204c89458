// How the connections of a store are shared between heartbeats, commits, everything else, and transactions of users, which
// last as long as their code does.

import { Pool, type PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow, type Holdfast } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import type { ClientLike, PoolLike } from '../../src/stores/postgres/connection/database.ts'
import { until } from '../support/until.ts'
import { freshDatabase, freshSchema } from '../support/postgres-shared.ts'
import { never, place, type Tx } from './lent.ts'
import { transactionOn } from './transaction-on.ts'

describe('transactions that are lent a connection', { timeout: 60_000 }, () => {
  it('are at most all but three, begin in order, and leave heartbeats and commits their own', async () => {
    const here = await place({ connections: 6, listen: false })
    const begun: number[] = []
    const open: (() => void)[] = []
    let most = 0
    let now = 0
    const long = workflow('long', (ctx, n: number) =>
      ctx.transaction('hold', async (tx: Tx, step) => {
        begun.push(n)
        most = Math.max(most, (now += 1))
        await tx.query('select 1')
        await new Promise<void>((resolve) => open.push(resolve))
        now -= 1
        return step.attempt
      }),
    )
    const short = workflow('short', async (ctx, n: number) => (await ctx.step('one', () => n)) + 1)
    const holdfast = await here.open({ workflows: [long, short] })
    // Shorter than all of it takes: a session that does not beat meanwhile loses everything.
    await holdfast.work({ lease: '2s' })
    const runs = []
    for (let n = 0; n < 12; n += 1) runs.push(await holdfast.start(long, n))
    await until('as many as may be are open', () => now === 3)
    const beside = await Promise.all([1, 2, 3, 4].map((n) => holdfast.start(short, n)))
    expect(await Promise.all(beside.map((run) => run.result()))).toEqual([2, 3, 4, 5])
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    const inside = (await here.connections()).filter(({ state }) => state === 'idle in transaction')
    expect(inside).toHaveLength(3)
    expect((await here.connections()).length).toBeLessThanOrEqual(6)
    expect(new Set(begun)).toEqual(new Set([0, 1, 2]))
    for (let ended = 1; ended <= 12; ended += 1) {
      ;(await until('one is open', () => open.shift()))()
      await until('the next has begun', () => begun.length === Math.min(12, 3 + ended))
    }
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(runs.map(() => 1))
    expect(begun.slice(3)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(most).toBe(3)
    expect(here.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
  })

  it('may ask Holdfast for anything, however many of them do', async () => {
    const here = await place({ connections: 4 })
    const world: { holdfast?: Holdfast } = {}
    let calls = 0
    const asking = workflow('asking', (ctx) =>
      ctx.transaction('ask', async (tx: Tx) => {
        calls += 1
        await tx.query("update accounts set balance = balance + 1 where id = 'a'")
        const { status } = await world.holdfast!.get(ctx.run.id)
        const other = await world.holdfast!.start(idle, undefined, { key: ctx.run.id })
        await world.holdfast!.signal(other, 'news')
        await world.holdfast!.find({ type: 'asking' })
        return status
      }),
    )
    const idle = workflow('idle', (ctx) => ctx.receive('news'))
    const holdfast = (world.holdfast = await here.open({ workflows: [asking, idle] }))
    await holdfast.work()
    const runs = await Promise.all(Array.from({ length: 20 }, () => holdfast.start(asking)))
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(runs.map(() => 'running'))
    expect(calls).toBe(20)
    expect(await here.balances()).toEqual({ a: 20, b: 0 })
  })

  it.each([2, 3])('share what there is of %i connections', async (connections) => {
    const here = await place({ connections, listen: false })
    const flow = workflow('flow', async (ctx, n: number) => {
      const first = await ctx.step('first', () => n)
      await ctx.transaction('write', async (tx: Tx) => {
        await tx.query("update accounts set balance = balance + 1 where id = 'a'")
      })
      return first + (await ctx.step('second', () => 1))
    })
    const holdfast = await here.open({ workflows: [flow] })
    await holdfast.work()
    const runs = await Promise.all(Array.from({ length: 8 }, (_, n) => holdfast.start(flow, n)))
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(runs.map((_, n) => n + 1))
    expect(await here.balances()).toEqual({ a: 8, b: 0 })
    expect((await here.connections()).length).toBeLessThanOrEqual(connections)
  })

  it('are refused where there are fewer than two: a call inside of a transaction would wait for its end', async () => {
    for (const connections of [0, -1, 1, 1.5, Number.NaN]) {
      await expect(openPostgresStore({ url: 'postgres://nowhere', connections })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('openPostgresStore({ connections }) is a whole number from 2') as string,
      })
    }
    const pool = new Pool({ connectionString: 'postgres://nowhere', max: 1 })
    await expect(openPostgresStore({ pool })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('`max` of openPostgresStore({ pool }) is a whole number from 2') as string,
    })
  })

  it('are enough for a call inside of a transaction if they are two', async () => {
    const here = await place({ connections: 2 })
    const world: { holdfast?: Holdfast } = {}
    const flow = workflow('flow', (ctx) =>
      ctx.transaction('look', async () => (await world.holdfast?.get(ctx.run.id))?.status),
    )
    const holdfast = (world.holdfast = await here.open({ workflows: [flow] }))
    await holdfast.work()
    expect(await (await holdfast.start(flow)).result()).toBe('running')
  })
})

describe("a pool of the user's own", { timeout: 60_000 }, () => {
  it('that gives no connection is waited for no longer than the storage timeout, and gets late ones back', async () => {
    const { url, schema } = await freshSchema()
    const mine = new Pool({ connectionString: url, max: 2 })
    onTestFinished(() => mine.end())
    const store = await openPostgresStore({ pool: mine, schema, storageTimeout: '300ms', listen: false })
    await store.migrate()
    // The application uses all of it.
    const taken: readonly PoolClient[] = [await mine.connect(), await mine.connect()]
    await expect(store.count({}, 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(store.beat({ session: 'one', leaseMs: 1_000 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(store.transact(async () => 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(openPostgresStore({ pool: mine, schema, storageTimeout: '300ms' })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    for (const client of taken) client.release()
    await until('what came late is given back', () => mine.idleCount === 2 && mine.waitingCount === 0)
    expect(await store.count({}, 1)).toBe(0)
    await store.close()
  })

  it('is not asked for more at once than its size, and its transactions leave some of it', async () => {
    const url = await freshDatabase()
    const mine = new Pool({ connectionString: url, max: 5 })
    onTestFinished(() => mine.end())
    let most = 0
    let now = 0
    const counted: PoolLike = {
      options: mine.options,
      async connect() {
        most = Math.max(most, (now += 1))
        const client: ClientLike = await mine.connect()
        const release = client.release.bind(client)
        client.release = (error) => {
          now -= 1
          release(error)
        }
        return client
      },
      end: async () => undefined,
    }
    const { store } = await place({ pool: counted, listen: false })
    const aborting = new AbortController()
    const hung = Array.from({ length: 8 }, () => store.transact(never, { signal: aborting.signal }))
    const ends = Promise.allSettled(hung)
    await Promise.all(Array.from({ length: 20 }, () => store.count({}, 1)))
    await store.beat({ session: 'one', leaseMs: 1_000 })
    aborting.abort(new Error('enough'))
    await ends
    await store.close()
    expect(most).toBeLessThanOrEqual(5)
    expect(now).toBe(0)
  })

  it('is shared with transactions of their own library: all but three, in order, and a beat finds a connection', async () => {
    const here = await place({ listen: false })
    const mine = new Pool({ connectionString: here.url, max: 6 })
    onTestFinished(() => mine.end())
    const store = await openPostgresStore({ pool: mine, listen: false })
    onTestFinished(() => store.close())
    const open = { now: 0, most: 0, begun: 0 }
    let go: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (go = resolve))
    const flow = workflow('flow', (ctx) =>
      ctx.transaction('hold', async () => {
        open.begun += 1
        open.most = Math.max(open.most, (open.now += 1))
        await gate
        open.now -= 1
      }),
    )
    const holdfast = await here.open({
      store,
      workflows: [flow],
      transaction: transactionOn(mine),
    })
    await holdfast.work()
    const runs = await Promise.all(Array.from({ length: 12 }, () => holdfast.start(flow)))
    await until('as many are open as may be', () => open.now === 3)
    // Nothing of ours waits in the pool of the user behind what lasts long.
    await store.beat({ session: 'another', leaseMs: 10_000 })
    expect(await holdfast.count({})).toMatchObject({ count: 12 })
    expect(mine.waitingCount).toBe(0)
    expect(open).toEqual({ now: 3, most: 3, begun: 3 })
    go()
    await Promise.all(runs.map((run) => run.result()))
    expect(open).toEqual({ now: 0, most: 3, begun: 12 })
  })

  it('of two connections has none left to listen with', async () => {
    const { url, schema } = await freshSchema()
    const mine = new Pool({ connectionString: url, max: 2 })
    onTestFinished(() => mine.end())
    const store = await openPostgresStore({ pool: mine, schema, storageTimeout: '2s' })
    await store.migrate()
    await store.listen(() => undefined)
    expect(store.capabilities.notifies).toBe(false)
    expect(await store.transact(async () => 'done')).toBe('done')
    await store.close()
  })
})

describe('a pool of the application', () => {
  it('gets every connection back when the last Holdfast on it is closed, and hears again with the next', async () => {
    const pool = new Pool({ connectionString: await freshDatabase() })
    onTestFinished(() => pool.end())
    const store = await openPostgresStore({ pool })
    const noop = workflow('noop', () => 1)
    for (let time = 1; time <= 2; time += 1) {
      const holdfast = await createHoldfast({ store, workflows: [noop] })
      await until('it listens', () => store.capabilities.notifies)
      expect(await (await holdfast.start(noop, undefined)).status()).toBe('pending')
      await holdfast.close()
      await until('all connections are idle', () => pool.totalCount === pool.idleCount)
    }
  })
})
