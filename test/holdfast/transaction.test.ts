// `ctx.transaction`: a step whose writes and whose entry are committed together, exactly once, whatever goes wrong.

import { describe, expect, it } from 'vitest'
import { fatal, workflow, type Context, type Holdfast } from 'holdfast'
import { gate, settled } from './gate.ts'
import { open } from './open.ts'
import { insertOrder, kinds, ownTables, quickly, soundness, type Db } from './own-tables.ts'

describe('ctx.transaction', () => {
  it('commits what it wrote together with its result, and a replay returns that', async () => {
    const { open, orders } = await ownTables()
    let calls = 0
    let bodies = 0
    const book = workflow('book', quickly, async (ctx, id: string) => {
      bodies += 1
      const at = await ctx.transaction('insert', (tx: Db, step) => {
        calls += 1
        insertOrder(tx, id)
        return { id, attempt: step.attempt, key: step.idempotencyKey }
      })
      if (bodies === 1) throw new Error('the body fails once')
      return at
    })
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    const run = await holdfast.start(book, 'a')
    expect(await run.result()).toEqual({ id: 'a', attempt: 1, key: `${run.id}:1:insert` })
    expect([calls, bodies]).toEqual([1, 2])
    expect(orders()).toEqual(['a'])
    expect(await kinds(holdfast, run.id)).toEqual(['started', 'step-succeeded', 'attempt-failed', 'succeeded'])
    expect(await soundness(holdfast)).toEqual([])
  })

  it('is rolled back when it throws, and tried again as its policy says', async () => {
    const { open, orders } = await ownTables()
    let calls = 0
    const book = workflow('book', (ctx) =>
      ctx.transaction(
        'insert',
        async (tx: Db) => {
          calls += 1
          insertOrder(tx, `order ${calls}`)
          await settled()
          if (calls < 3) throw new Error('not yet')
          return calls
        },
        quickly,
      ),
    )
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    const run = await holdfast.start(book)
    expect(await run.result()).toBe(3)
    expect(orders()).toEqual(['order 3'])
    expect(await kinds(holdfast, run.id)).toEqual([
      'started',
      'attempt-failed',
      'attempt-failed',
      'step-succeeded',
      'succeeded',
    ])
  })

  it('fails for good like any step, and the body may catch that', async () => {
    const { open, orders } = await ownTables()
    const book = workflow('book', async (ctx) => {
      const message = await ctx
        .transaction('insert', (tx: Db) => {
          insertOrder(tx, 'a')
          throw fatal('sold out')
        })
        .catch((error: unknown) => (error as Error).message)
      const refused = await ctx
        .transaction('store', (tx: Db) => {
          insertOrder(tx, 'b')
          return () => 'a function cannot be stored'
        })
        .catch((error: unknown) => (error as { code: string }).code)
      return [message, refused]
    })
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    expect(await (await holdfast.start(book)).result()).toEqual(['sold out', 'NOT_STORABLE'])
    expect(orders()).toEqual([])
  })

  it('whose function overstays its timeout is rolled back, and what it does later is refused', async () => {
    const { open, orders } = await ownTables()
    const late: unknown[] = []
    const over = gate()
    const book = workflow('book', (ctx) =>
      ctx.transaction(
        'insert',
        async (tx: Db, step) => {
          insertOrder(tx, `order ${step.attempt}`)
          if (step.attempt > 1) return step.attempt
          await new Promise((resolve) => step.abortSignal.addEventListener('abort', resolve))
          void over.passed.then(() => {
            try {
              insertOrder(tx, 'late')
            } catch (error) {
              late.push(error)
            }
          })
          return 'too late'
        },
        { ...quickly, timeout: 30 },
      ),
    )
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    const run = await holdfast.start(book)
    expect(await run.result()).toBe(2)
    over.open()
    await settled()
    expect(late).toMatchObject([{ code: 'INVALID_OPTION' }])
    expect(orders()).toEqual(['order 2'])
    expect(await kinds(holdfast, run.id)).toEqual(['started', 'attempt-failed', 'step-succeeded', 'succeeded'])
  })

  it('that hangs is rolled back after the storage timeout, and everyone else goes on', async () => {
    const { open, orders } = await ownTables(100)
    const book = workflow('book', (ctx) =>
      ctx.transaction(
        'insert',
        async (tx: Db, step) => {
          insertOrder(tx, `order ${step.attempt}`)
          if (step.attempt === 1) await new Promise(() => undefined)
          return step.attempt
        },
        quickly,
      ),
    )
    const other = workflow('other', (ctx) => ctx.step('go', () => 'done'))
    const holdfast = await open({ workflows: [book, other] })
    await holdfast.work()
    const run = await holdfast.start(book)
    expect(await (await holdfast.start(other)).result()).toBe('done')
    expect(await run.result()).toBe(2)
    expect(orders()).toEqual(['order 2'])
  })

  it('that hangs does not keep close() from its end', async () => {
    // The test times out long before the storage timeout would end the transaction.
    const { open, orders, store } = await ownTables('10m')
    const inside = gate()
    const book = workflow('book', (ctx) =>
      ctx.transaction('insert', async (tx: Db) => {
        insertOrder(tx, 'a')
        inside.open()
        await new Promise(() => undefined)
      }),
    )
    const holdfast = await open({ workflows: [book] })
    await holdfast.work({ shutdownTimeout: 100, lease: '1h' })
    const run = await holdfast.start(book)
    await inside.passed
    await holdfast.close()
    expect(orders()).toEqual([])
    expect(await store.get([run.id])).toMatchObject([{ status: 'pending', session: null, crashes: 0 }])
  })

  it('takes part in nothing of others, and holds none of them up for good, while it is open', async () => {
    const { open, orders, path } = await ownTables()
    const book = workflow('book', (ctx) =>
      ctx.transaction('insert', async (tx: Db, step) => {
        insertOrder(tx, 'a')
        await new Promise((resolve) => setTimeout(resolve, 200))
        if (step.attempt === 1) throw fatal('rolled back')
      }),
    )
    const other = workflow('other', async (ctx, n: number) => {
      const doubled = await ctx.step('double', () => n * 2)
      return ctx.step('more', () => doubled + 1)
    })
    const holdfast = await open({ workflows: [book, other] })
    // A second store on the same file shares the gate.
    const second = await open({ workflows: [other], store: `sqlite:${path}` })
    await holdfast.work()
    await second.work()
    const run = await holdfast.start(book)
    const others = await Promise.all(
      [1, 2, 3, 4, 5, 6].map(async (n) => (await (n % 2 === 0 ? holdfast : second).start(other, n)).result()),
    )
    expect(others).toEqual([3, 5, 7, 9, 11, 13])
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_FAILED' })
    expect(orders()).toEqual([])
    expect(await soundness(holdfast)).toEqual([])
  })

  it('lets a run start another one in it, if and only if it commits', async () => {
    const { open, orders } = await ownTables()
    const world: { holdfast?: Holdfast } = {}
    const child = workflow('child', (_ctx, n: number) => n + 1)
    const parent = workflow('parent', (ctx) =>
      ctx.transaction(
        'spawn',
        async (tx: Db, step) => {
          insertOrder(tx, `order ${step.attempt}`)
          const run = await world.holdfast!.using(tx).start(child, step.attempt, { key: `child ${step.attempt}` })
          if (step.attempt === 1) throw new Error('not yet')
          return run.id
        },
        quickly,
      ),
    )
    const holdfast = (world.holdfast = await open({ workflows: [parent, child] }))
    await holdfast.work()
    const id = await (await holdfast.start(parent)).result()
    expect(await holdfast.run(id).result()).toBe(3)
    expect(orders()).toEqual(['order 2'])
    expect((await holdfast.find({ type: 'child' })).runs).toHaveLength(1)
  })

  it('is undone like any step', async () => {
    const { db, open, orders } = await ownTables()
    const book = workflow('book', async (ctx) => {
      await ctx.transaction('insert', (tx: Db) => insertOrder(tx, 'a'), {
        undo: () => db.exec("delete from orders where id = 'a'"),
      })
      throw fatal('out of stock')
    })
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    await expect((await holdfast.start(book)).result()).rejects.toMatchObject({ code: 'RUN_FAILED' })
    expect(orders()).toEqual([])
  })

  it('says what it needs', async () => {
    const book = workflow('book', (ctx) => ctx.transaction('insert', () => 1))
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    const failed = await (await holdfast.start(book)).result().catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'RUN_FAILED', cause: { code: 'INVALID_OPTION' } })
    await expect(open({ transaction: (work) => work(undefined) })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })
})

describe('a transaction beside other calls of its body', () => {
  async function inParallel(body: (ctx: Context, log: string[]) => Promise<unknown>): Promise<readonly string[]> {
    const { open } = await ownTables()
    const logs: string[][] = []
    let bodies = 0
    const flow = workflow('flow', quickly, async (ctx) => {
      bodies += 1
      const log: string[] = []
      logs.push(log)
      await body(ctx, log)
      if (bodies < 3) throw new Error('again')
      return log
    })
    const holdfast = await open({ workflows: [flow] })
    await holdfast.work()
    await (await holdfast.start(flow)).result()
    expect(logs).toHaveLength(3)
    expect(logs[1]).toEqual(logs[0])
    expect(logs[2]).toEqual(logs[0])
    expect(await soundness(holdfast)).toEqual([])
    return logs[0] ?? []
  }

  it('shows the body the same order as a replay', async () => {
    const log = await inParallel(async (ctx, log) => {
      const opened = gate()
      const ended = gate()
      await Promise.all([
        ctx
          .transaction('write', async (tx: Db) => {
            insertOrder(tx, 'a')
            opened.open()
            await Promise.race([ended.passed, settled()])
          })
          .then(() => log.push('write')),
        ctx
          .step('first', async () => {
            await opened.passed
            ended.open()
          })
          .then(() => log.push('first')),
        ctx.step('second', () => settled()).then(() => log.push('second')),
        ctx.sleep(5).then(() => log.push('slept')),
      ])
    })
    expect([...log].sort()).toEqual(['first', 'second', 'slept', 'write'])
  })

  it('sends each message once, whether its entry goes through the transaction or not', async () => {
    const { open } = await ownTables()
    const counter = workflow('counter', async (ctx) => {
      const got: unknown[] = []
      while (got.at(-1) !== 'end') got.push(await ctx.receive('item'))
      return got
    })
    const sender = workflow('sender', async (ctx, to: string) => {
      const [opened, sent] = [gate(), gate()]
      const transaction = ctx.transaction(
        'write',
        async (tx: Db, step) => {
          opened.open()
          await Promise.race([sent.passed, settled()])
          insertOrder(tx, `order ${step.attempt}`)
          if (step.attempt === 1) throw new Error('once more')
        },
        quickly,
      )
      await Promise.race([opened.passed, settled()])
      await ctx.signal(to, 'item', 1)
      sent.open()
      await transaction
      await ctx.signal(to, 'item', 'end')
    })
    const holdfast = await open({ workflows: [counter, sender] })
    await holdfast.work()
    const run = await holdfast.start(counter)
    await (await holdfast.start(sender, run.id)).result()
    expect(await run.result()).toEqual([1, 'end'])
    expect(await soundness(holdfast)).toEqual([])
  })

  it('waits for another one of the same run', async () => {
    let open = 0
    let most = 0
    const log = await inParallel((ctx, log) =>
      Promise.all(
        ['a', 'b', 'c'].map(async (id) => {
          await ctx.transaction(id, async (tx: Db) => {
            most = Math.max(most, (open += 1))
            insertOrder(tx, id)
            await settled()
            open -= 1
          })
          log.push(id)
          await ctx.step(`after ${id}`, () => settled())
          log.push(`after ${id}`)
        }),
      ),
    )
    expect([...log].sort()).toEqual(['a', 'after a', 'after b', 'after c', 'b', 'c'])
    expect(most).toBe(1)
  })

  it('that nobody awaits is committed before the run ends', async () => {
    const { open, orders } = await ownTables()
    const begun = gate()
    const flow = workflow('flow', async (ctx) => {
      void ctx.transaction('write', async (tx: Db) => {
        insertOrder(tx, 'a')
        begun.open()
        await new Promise((resolve) => setTimeout(resolve, 50))
      })
      await ctx.step('other', () => begun.passed)
      return 'done'
    })
    const holdfast = await open({ workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow)
    expect(await run.result()).toBe('done')
    expect(orders()).toEqual(['a'])
    const kindsOfAll = await kinds(holdfast, run.id)
    expect(kindsOfAll).toEqual(['started', 'step-succeeded', 'step-succeeded', 'succeeded'])
  })

  it('is committed before a cancellation that came meanwhile, and then undone', async () => {
    const { db, open, orders } = await ownTables()
    const begun = gate()
    const undone: unknown[] = []
    const flow = workflow('flow', async (ctx) => {
      await ctx.transaction(
        'write',
        async (tx: Db) => {
          insertOrder(tx, 'a')
          begun.open()
          await settled()
          return 'written'
        },
        {
          undo(result) {
            undone.push(result, orders())
            db.exec('delete from orders')
          },
        },
      )
      await ctx.sleep('1 h')
    })
    const holdfast = await open({ workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow)
    await begun.passed
    void holdfast.cancel(run)
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_CANCELLED' })
    expect(undone).toEqual(['written', ['a']])
    expect(orders()).toEqual([])
  })
})
