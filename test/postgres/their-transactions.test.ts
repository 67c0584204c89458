// What a user may do in a transaction of theirs on Postgres, and what they may not: its settings are the server's, its end is
// ours, and its isolation is what they ask for.

import { Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { until } from '../support/until.ts'
import { connectedTo, place, type Tx, once, perform } from './lent.ts'
import { transactionOn } from './transaction-on.ts'

/** Ways in which a function may end its transaction. */
const ends = [
  'rollback',
  'commit',
  'end',
  'abort',
  'rollback and chain',
  'commit and chain',
  'rollback; begin',
  'commit; begin',
  "commit; begin; update accounts set balance = 9 where id = 'b'",
]

describe('a function that ends its transaction', { timeout: 60_000 }, () => {
  it.each(ends)('with %s has failed, and is not tried again', async (end) => {
    const here = await place({ listen: false })
    const { result, kinds } = await perform(here, async (tx) => {
      await tx.query("update accounts set balance = 1 where id = 'a'")
      await tx.query(end)
    })
    expect(result).toMatchObject({ cause: { code: 'INVALID_OPTION' } })
    expect(kinds).toEqual(['started', 'step-failed', 'failed'])
    expect((await here.balances())['b']).toBe(0)
  })

  it('or seems to, because it reset all settings, has failed with an error that says so', async () => {
    const here = await place({ listen: false })
    const { result } = await perform(here, async (tx) => {
      await tx.query("update accounts set balance = 1 where id = 'a'")
      await tx.query('reset all')
    })
    const message = expect.stringContaining('RESET ALL') as string
    expect(result).toMatchObject({ cause: { code: 'INVALID_OPTION', message } })
    expect(await here.balances()).toEqual({ a: 0, b: 0 })
  })

  it('without waiting for that has failed, too', async () => {
    const here = await place({ listen: false })
    const { result } = await perform(here, async (tx) => {
      await tx.query("update accounts set balance = 1 where id = 'a'")
      void tx.query('rollback')
    })
    expect(result).toMatchObject({ cause: { code: 'INVALID_OPTION' } })
  })

  it('may write to it no more once it has returned', async () => {
    const here = await place({ listen: false })
    const late: Promise<unknown>[] = []
    const { result } = await perform(here, async (tx) => {
      late.push(
        (async () => {
          await new Promise((resolve) => setTimeout(resolve, 300))
          await tx.query("update accounts set balance = 1 where id = 'a'")
        })().catch((error: unknown) => error),
      )
      return 'done'
    })
    expect(result).toBe('done')
    expect(await Promise.all(late)).toMatchObject([{ code: 'INVALID_OPTION' }])
    expect(await here.balances()).toEqual({ a: 0, b: 0 })
  })

  it.each(['release', 'end'] as const)('may not %s its connection either', async (method) => {
    const here = await place({ listen: false })
    const { result } = await perform(here, async (tx) => (tx as Tx & { release(): void; end(): void })[method]())
    expect(result).toMatchObject({ cause: { code: 'INVALID_OPTION' } })
  })

  it.each(['rollback', 'commit; begin'])('of their own library with %s has failed, too', async (end) => {
    const here = await place({ listen: false })
    const pool = new Pool({ connectionString: here.url, max: 2 })
    onTestFinished(() => pool.end())
    const transaction = transactionOn(pool)
    const { result, kinds } = await perform(here, async (tx) => void (await tx.query(end)), { transaction })
    expect(result).toMatchObject({ cause: { code: 'INVALID_OPTION' } })
    expect(kinds).toEqual(['started', 'step-failed', 'failed'])
  })
})

describe('a function that uses its transaction', { timeout: 60_000 }, () => {
  it('may roll back to a savepoint, and go on', async () => {
    const here = await place({ listen: false })
    const { result } = await perform(here, async (tx) => {
      await tx.query("update accounts set balance = 1 where id = 'a'")
      await tx.query('savepoint one')
      await tx.query('insert into accounts values (null, 1)').catch(() => undefined)
      await tx.query('rollback to savepoint one')
      await tx.query('savepoint two; update accounts set balance = 2; release savepoint two')
      return 'done'
    })
    expect(result).toBe('done')
    expect(await here.balances()).toEqual({ a: 2, b: 2 })
  })

  it('may begin with SET TRANSACTION', async () => {
    const here = await place({ listen: false })
    const { result } = await perform(here, async (tx) => {
      await tx.query('set transaction isolation level repeatable read')
      return (await tx.query("select current_setting('transaction_isolation') as level")).rows
    })
    expect(result).toEqual([{ level: 'repeatable read' }])
  })

  it('and catches an error of a statement has failed: nothing of it can be committed', async () => {
    const here = await place({ listen: false })
    const { result, kinds } = await perform(here, async (tx) => {
      await tx.query('insert into accounts values (null, 1)').catch(() => undefined)
      return 'done'
    })
    expect(result).toMatchObject({ code: 'RUN_FAILED' })
    expect(kinds).toEqual(['started', 'step-failed', 'failed'])
  })

  it('may begin no other transaction of its run', async () => {
    const here = await place({ listen: false, connections: 2 })
    const { result } = await perform(here, (_tx, ctx) => ctx.transaction('inner', () => 1))
    expect(result).toMatchObject({ cause: { code: 'INVALID_OPTION' } })
  })
})

describe('a transaction of a run whose row is locked', { timeout: 60_000 }, () => {
  it.each(['a message that is sent in an open transaction', 'a stranger'])(
    'is tried again when the row is free, whatever its policy says: %s',
    async (who) => {
      // Where nothing waits long: a fifteenth of it for a lock.
      const here = await place({ storageTimeout: '1500ms' })
      let calls = 0
      let open = (): void => undefined
      const gate = new Promise<void>((resolve) => (open = resolve))
      const flow = workflow('flow', (ctx) =>
        ctx.transaction(
          'write',
          async (tx: Tx) => {
            await tx.query("update accounts set balance = balance + 1 where id = 'a'")
            calls += 1
            await gate
            return 'done'
          },
          once,
        ),
      )
      const holdfast = await here.open({ workflows: [flow] })
      await holdfast.work()
      const run = await holdfast.start(flow)
      await until('it has written', () => calls === 1)
      const user = await connectedTo(here.url)
      await user.query('begin')
      if (who === 'a stranger') await user.query('select 1 from holdfast.runs for update')
      else await holdfast.using(user).signal(run, 'news', 1)
      open()
      const free = "select 1 from accounts where id = 'a' for update skip locked"
      await until('it was rolled back', async () => (await here.client.query(free)).rows.length > 0)
      await user.query('commit')
      expect(await run.result()).toBe('done')
      expect(calls).toBe(2)
      expect(await here.balances()).toEqual({ a: 1, b: 0 })
      const kinds = (await holdfast.journal(run)).map(({ kind }) => kind)
      expect(kinds.filter((kind) => kind === 'attempt-failed')).toHaveLength(1)
      expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    },
  )

  it('fails by the lock that its own statement met', async () => {
    const here = await place()
    await here.client.query("begin; update accounts set balance = 5 where id = 'a'")
    const { result, kinds } = await perform(here, (tx) =>
      tx.query("select balance from accounts where id = 'a' for update nowait"),
    )
    expect(result).toMatchObject({ code: 'RUN_FAILED', cause: { code: '55P03' } })
    expect(kinds).not.toContain('attempt-failed')
  })
})

describe('a serializable transaction', { timeout: 60_000 }, () => {
  it('is tried again when others were in the way, whatever its policy says', async () => {
    const here = await place()
    const calls: string[] = []
    // Each reads both accounts and writes one: two at once are in each other's way, though they write different rows.
    let met = 0
    const move = workflow('move', (ctx, to: string) =>
      ctx.transaction(
        'move',
        async (tx: Tx) => {
          calls.push(to)
          const { rows } = await tx.query(
            `select sum(balance)::integer as sum, current_setting('transaction_isolation') as level from accounts`,
          )
          expect(rows[0]?.['level']).toBe('serializable')
          met += 1
          if (met <= 2) await until('both have looked', () => met >= 2)
          await tx.query('update accounts set balance = $1 where id = $2', [Number(rows[0]?.['sum']) + 1, to])
          return rows[0]?.['sum']
        },
        { ...once, isolation: 'serializable' },
      ),
    )
    const holdfast = await here.open({ workflows: [move] })
    await holdfast.work()
    const runs = await Promise.all(['a', 'b'].map((to) => holdfast.start(move, to)))
    const sums = await Promise.all(runs.map((run) => run.result()))
    // One after the other, in whichever order.
    expect(new Set(sums)).toEqual(new Set([0, 1]))
    expect(calls).toHaveLength(3)
    expect(new Set(Object.values(await here.balances()))).toEqual(new Set([1, 2]))
  })

  it('is one also where many meet, and each happens once', async () => {
    const here = await place()
    const add = workflow('add', (ctx) =>
      ctx.transaction(
        'add',
        async (tx: Tx) => {
          const { rows } = await tx.query("select balance from accounts where id = 'a'")
          await tx.query("update accounts set balance = $1 where id = 'a'", [Number(rows[0]?.['balance']) + 1])
        },
        { ...once, isolation: 'serializable' },
      ),
    )
    const holdfast = await here.open({ workflows: [add] })
    await holdfast.work()
    const runs = await Promise.all(Array.from({ length: 15 }, () => holdfast.start(add)))
    await Promise.all(runs.map((run) => run.result()))
    expect(await here.balances()).toEqual({ a: 15, b: 0 })
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('of their own library must be what was asked for', async () => {
    const here = await place({ listen: false })
    const pool = new Pool({ connectionString: here.url, max: 2 })
    onTestFinished(() => pool.end())
    const flow = workflow('flow', (ctx, _level: 'deaf' | 'hears') =>
      ctx.transaction('write', async () => 'done', { ...once, isolation: 'serializable' }),
    )
    const result = async (hears: boolean): Promise<unknown> => {
      const holdfast = await here.open({
        workflows: [flow],
        transaction: async (work, { isolation }) => {
          const client = await pool.connect()
          try {
            await client.query(hears ? `begin isolation level ${isolation}` : 'begin')
            await work(client)
            await client.query('commit')
          } catch (error) {
            await client.query('rollback')
            throw error
          } finally {
            client.release()
          }
        },
      })
      const worker = await holdfast.work()
      const run = await holdfast.start(flow, hears ? 'hears' : 'deaf')
      const end = await run.result().catch((error: unknown) => error)
      await worker.stop()
      return end
    }
    expect(await result(false)).toMatchObject({ cause: { code: 'INVALID_OPTION' } })
    expect(await result(true)).toBe('done')
  })

  it('is an option of a transaction alone, and has one value', async () => {
    const here = await place({ listen: false })
    const flow = workflow('flow', async (ctx) => {
      const isolation = 'sometimes' as 'serializable'
      const codes = [
        ctx.transaction('write', async () => 1, { isolation }),
        ctx.step('step', () => 1, { isolation } as object),
      ].map((call) => call.catch((error: unknown) => (error as { code: string }).code))
      return Promise.all(codes)
    })
    const holdfast = await here.open({ workflows: [flow] })
    await holdfast.work()
    expect(await (await holdfast.start(flow)).result()).toEqual(['INVALID_OPTION', 'INVALID_OPTION'])
  })
})

describe('a function that spoils its transaction', { timeout: 60_000 }, () => {
  it.each<readonly [string, (tx: Tx) => Promise<unknown>, RegExp]>([
    [
      'and catches the error of a statement',
      (tx) => tx.query('select nonsense').catch(() => 1),
      /A statement in the transaction failed.*column "nonsense" does not exist.*SAVEPOINT/,
    ],
    [
      'by making it read-only',
      (tx) => tx.query('set transaction read only').then(() => 1),
      /made read-only.*READ ONLY/,
    ],
  ])('%s is refused with that, and not tried again', async (_how, work, said) => {
    for (const own of [false, true]) {
      const here = await place({ listen: false })
      let attempts = 0
      const flow = workflow('flow', { retry: 'none' }, (ctx) =>
        ctx.transaction(
          'write',
          (tx: Tx) => {
            attempts += 1
            return work(tx)
          },
          { retry: { maxAttempts: 3, initial: 1 } },
        ),
      )
      const pool = new Pool({ connectionString: here.url })
      onTestFinished(() => pool.end())
      const holdfast = await here.open({ workflows: [flow], ...(own ? { transaction: transactionOn(pool) } : {}) })
      await holdfast.work()
      const result = await (await holdfast.start(flow)).result().catch((error: unknown) => error)
      const expected = own ? new RegExp(said.source.replace(/\.\*column.*exist/, '')) : said
      expect(result).toMatchObject({
        cause: { code: 'INVALID_OPTION', message: expect.stringMatching(expected) as string },
      })
      expect(attempts).toBe(1)
    }
  })
})
