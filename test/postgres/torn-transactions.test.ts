// A transaction whose function hangs, inside of a statement or outside of one: its timeout, and the end of its process, roll it
// back and close its connection. Nobody else waits for it.

import { Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HoldfastError, workflow } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { until } from '../support/until.ts'
import { freshDatabase } from '../support/postgres-shared.ts'
import { startWireProxy } from '../support/wire-proxy.ts'
import { connectedTo, never, place, type Place, type Tx } from './lent.ts'
import { transactionOn } from './transaction-on.ts'

const once = { retry: 'none' } as const

const hangs: readonly (readonly [string, (tx: Tx) => Promise<unknown>])[] = [
  ['outside of a statement', never],
  ['inside of a statement', (tx) => tx.query('select pg_sleep(600)')],
  [
    'behind several statements',
    (tx) => Promise.all([tx.query('select pg_sleep(600)'), tx.query('select pg_sleep(600)')]),
  ],
]

/** Nobody holds the row any more, and no connection is in a transaction or busy. */
async function expectGone({ client, connections, balances }: Place): Promise<void> {
  await until('no connection is in a transaction', async () =>
    (await connections()).every(({ state, query }) => state === 'idle' && !query.includes('pg_sleep')),
  )
  await client.query("begin; select * from accounts where id = 'a' for update nowait; rollback")
  expect(await balances()).toEqual({ a: 0, b: 0 })
}

describe('a transaction that hangs', { timeout: 60_000 }, () => {
  it.each(hangs)('%s is rolled back at its timeout, and its connection is closed', async (_where, hang) => {
    const here = await place({ connections: 4 })
    const late: unknown[] = []
    let tx: Tx | undefined
    const stuck = workflow('stuck', (ctx) =>
      ctx.transaction(
        'hang',
        async (given: Tx) => {
          tx = given
          await given.query("update accounts set balance = 1 where id = 'a'")
          await hang(given)
        },
        { ...once, timeout: 200 },
      ),
    )
    const holdfast = await here.open({ workflows: [stuck] })
    await holdfast.work()
    const failed = await (await holdfast.start(stuck)).result().catch((error: unknown) => error)
    expect(failed).toMatchObject({ cause: { code: 'STEP_TIMEOUT' } })
    await expectGone(here)
    try {
      await tx?.query("update accounts set balance = 2 where id = 'a'")
    } catch (error) {
      late.push(error)
    }
    expect(late).toMatchObject([{ code: 'INVALID_OPTION' }])
    expect(await here.balances()).toEqual({ a: 0, b: 0 })
  })

  it('holds up nobody else, however many hang', async () => {
    const here = await place({ connections: 5 })
    let begun = 0
    const stuck = workflow('stuck', (ctx) =>
      ctx.transaction(
        'hang',
        async (tx: Tx) => {
          begun += 1
          await tx.query('select 1')
          return never()
        },
        { ...once, timeout: 300 },
      ),
    )
    const other = workflow('other', async (ctx, n: number) => (await ctx.step('one', () => n)) + 1)
    const holdfast = await here.open({ workflows: [stuck, other] })
    await holdfast.work({ lease: '5s' })
    const hanging = await Promise.all(Array.from({ length: 14 }, () => holdfast.start(stuck)))
    await until('one of them has begun', () => begun > 0)
    const others = await Promise.all(Array.from({ length: 14 }, (_, n) => holdfast.start(other, n)))
    // While the first of those that hang still does.
    expect(await Promise.all(others.map((run) => run.result()))).toEqual(others.map((_, n) => n + 1))
    const ends = await Promise.allSettled(hanging.map((run) => run.result()))
    expect(ends).toMatchObject(hanging.map(() => ({ reason: { cause: { code: 'STEP_TIMEOUT' } } })))
    // Who waited in line was not timed out before it had begun.
    expect(begun).toBe(14)
    await expectGone(here)
  })

  it.each(hangs)('%s does not keep close() from its end, and is begun again elsewhere', async (_where, hang) => {
    const here = await place({ connections: 4 })
    const calls: number[] = []
    let isHanging = true
    const stuck = workflow('stuck', (ctx) =>
      ctx.transaction('hang', async (tx: Tx, step) => {
        calls.push(step.attempt)
        await tx.query("update accounts set balance = balance + 1 where id = 'a'")
        if (isHanging) await hang(tx)
        return 'done'
      }),
    )
    const store = await openPostgresStore({ url: here.url, connections: 4 })
    const first = await here.open({ store, workflows: [stuck] })
    await first.work({ shutdownTimeout: 100 })
    const { id } = await first.start(stuck)
    await until('it has begun', () => calls.length > 0)
    await first.close()
    await store.close()
    await expectGone(here)
    isHanging = false
    const second = await here.open({ workflows: [stuck] })
    await second.work()
    expect(await second.run(id).result()).toBe('done')
    expect(await here.balances()).toEqual({ a: 1, b: 0 })
    expect(calls).toHaveLength(2)
  })

  it('is torn down by the end of its store, which is not kept waiting', async () => {
    const here = await place({ connections: 4 })
    const hung = here.store.transact(async (handle) => {
      await (handle as Tx).query("update accounts set balance = 1 where id = 'a'")
      return never()
    })
    const waiting = [1, 2, 3].map(() => here.store.transact(never))
    const ends = Promise.allSettled([hung, ...waiting])
    await until('it is open', async () => (await here.connections()).some(({ state }) => state.startsWith('idle in')))
    await here.store.close()
    expect(await ends).toMatchObject(Array.from({ length: 4 }, () => ({ reason: { code: 'CLOSED' } })))
    expect(await here.connections()).toEqual([])
    expect(await here.balances()).toEqual({ a: 0, b: 0 })
  })

  it("of the user's own library is rolled back at its timeout", async () => {
    const here = await place()
    const pool = new Pool({ connectionString: here.url, max: 2, application_name: 'holdfast' })
    onTestFinished(() => pool.end())
    const stuck = workflow('stuck', (ctx) =>
      ctx.transaction(
        'hang',
        async (tx: Tx) => {
          await tx.query("update accounts set balance = 1 where id = 'a'")
          return never()
        },
        { ...once, timeout: 200 },
      ),
    )
    const holdfast = await here.open({
      workflows: [stuck],
      transaction: transactionOn(pool),
    })
    await holdfast.work()
    const failed = await (await holdfast.start(stuck)).result().catch((error: unknown) => error)
    expect(failed).toMatchObject({ cause: { code: 'STEP_TIMEOUT' } })
    await expectGone(here)
    expect(pool.idleCount).toBe(1)
  })
})

describe('an abort', { timeout: 60_000 }, () => {
  it('while COMMIT is under way changes nothing: the answer decides', async () => {
    const here = await place()
    const { client } = here
    await client.query(`
      create function slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.7); return null; end $$;
      create constraint trigger slow after update on accounts deferrable initially deferred
        for each row execute function slowly()`)
    const aborting = new AbortController()
    const done = here.store.transact(
      async (handle) => {
        await (handle as Tx).query("update accounts set balance = 1 where id = 'a'")
        return 'written'
      },
      { signal: aborting.signal },
    )
    await until('COMMIT is under way', async () =>
      (await here.connections()).some(({ state, query }) => state === 'active' && query === 'commit'),
    )
    aborting.abort(new Error('too late'))
    expect(await done).toBe('written')
    expect(await here.balances()).toEqual({ a: 1, b: 0 })
  })

  it('leaves a transaction that has its result alone: a timeout during COMMIT is none', async () => {
    const here = await place()
    await here.client.query(`
      create function slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.7); return null; end $$;
      create constraint trigger slow after update on accounts deferrable initially deferred
        for each row execute function slowly()`)
    const calls: number[] = []
    const flow = workflow('flow', (ctx) =>
      ctx.transaction(
        'write',
        async (tx: Tx, step) => {
          calls.push(step.attempt)
          await tx.query("update accounts set balance = balance + 1 where id = 'a'")
          return step.attempt
        },
        { timeout: 200 },
      ),
    )
    const holdfast = await here.open({ workflows: [flow] })
    await holdfast.work()
    expect(await (await holdfast.start(flow)).result()).toBe(1)
    expect(calls).toEqual([1])
    expect(await here.balances()).toEqual({ a: 1, b: 0 })
  })

  it('before its turn takes it out of the line, and the others keep their order', async () => {
    const here = await place({ connections: 2 })
    const order: string[] = []
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    const first = here.store.transact(() => gate)
    const aborting = new AbortController()
    const reason = new HoldfastError('CLOSED', 'not wanted any more')
    const queued = ['a', 'b', 'c'].map((name) =>
      here.store.transact(async () => void order.push(name), name === 'b' ? { signal: aborting.signal } : {}),
    )
    aborting.abort(reason)
    await expect(queued[1]).rejects.toBe(reason)
    open()
    await Promise.all([first, queued[0], queued[2]])
    expect(order).toEqual(['a', 'c'])
  })
})

describe("a pool of the user's", { timeout: 60_000 }, () => {
  it('gets back a healthy connection for each that was torn down, and hears of no error', async () => {
    const url = await freshDatabase()
    const pool = new Pool({ connectionString: url, max: 4, application_name: 'holdfast' })
    onTestFinished(() => pool.end())
    const errors: unknown[] = []
    pool.on('error', (error) => errors.push(error))
    const { store } = await place({ pool, listen: false })
    const aborting = new AbortController()
    const torn = store.transact((handle) => (handle as Tx).query('select pg_sleep(600)'), { signal: aborting.signal })
    const watcher = await connectedTo(url)
    const isAsleep = async (): Promise<boolean> => {
      const { rows } = await watcher.query(
        `select 1 from pg_stat_activity where state = 'active' and query like '%pg_sleep(600)%' and pid <> pg_backend_pid()`,
      )
      return rows.length > 0
    }
    await until('it sleeps', isAsleep)
    aborting.abort(new Error('enough'))
    await expect(torn).rejects.toThrow('enough')
    await until('nothing sleeps', async () => !(await isAsleep()))
    expect(await store.transact(async () => 'well')).toBe('well')
    expect(errors).toEqual([])
    expect(pool.totalCount).toBeLessThanOrEqual(4)
  })
})

describe('a COMMIT whose answer is lost', { timeout: 60_000 }, () => {
  it.each([
    ['drop-reply', 1],
    ['drop-request', 2],
    ['blackhole', 2],
    [2_500, 1],
  ] as const)('leaves open what became of it, and the journal decides: nothing is doubled (%s)', async (how, times) => {
    const here = await place()
    const proxy = await startWireProxy(here.url)
    onTestFinished(() => proxy.close())
    const store = await openPostgresStore({ url: proxy.url, storageTimeout: '500ms', listen: false })
    onTestFinished(() => store.close())
    let calls = 0
    const flow = workflow('flow', (ctx) =>
      ctx.transaction(
        'write',
        async (tx: Tx) => {
          calls += 1
          await tx.query("update accounts set balance = balance + 1 where id = 'a'")
          if (calls === 1) void proxy.strike({ on: 'commit', how })
          return calls
        },
        // It is over while the answer is awaited, and then it is too late for it.
        { ...once, timeout: 1_000 },
      ),
    )
    const holdfast = await here.open({ store, workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow)
    expect(await run.result()).toBe(times)
    expect(calls).toBe(times)
    expect(await here.balances()).toEqual({ a: 1, b: 0 })
    expect((await holdfast.journal(run)).map(({ kind }) => kind)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })
})
