// Beginning anew under the same id, for runs that never end: replay reads nothing of what came before.

import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { workflow, type HoldfastError, type Workflow } from 'holdfast'
import { openWorking } from './open.ts'
import { everyStore } from './stores.ts'
import { kindsOf, virtualWorld } from './virtual-world.ts'

describe('continueAsNew', () => {
  it('WC-A5 goes on with a new input and without its history, under the same id and key', async () => {
    const { open, after } = virtualWorld()
    const keys: string[] = []
    const count: Workflow<number, string> = workflow('count', async (ctx, n: number): Promise<string> => {
      await ctx.step('tick', ({ idempotencyKey }) => void keys.push(idempotencyKey))
      if (n < 3) return ctx.continueAsNew(n + 1)
      return `counted to ${n}`
    })
    const holdfast = await open({ workflows: [count] })
    await holdfast.work()
    const run = await holdfast.start(count, 1, { key: 'counter' })
    expect(await after(run.result())).toBe('counted to 3')
    expect(await kindsOf(holdfast, run)).toEqual([
      'started',
      'step-succeeded',
      'continued',
      'step-succeeded',
      'continued',
      'step-succeeded',
      'succeeded',
    ])
    // The same step of another round is another step to the service it calls.
    expect(new Set(keys).size).toBe(3)
    expect((await holdfast.get(run)).key).toBe('counter')
  })

  it('does not begin in the async context that the code before it had made for itself', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    const loop: Workflow<number, void> = workflow('loop.context', (ctx, n: number): Promise<void> => {
      seen.push(context.getStore())
      return n === 3 ? Promise.resolve() : context.run(`round ${n}`, () => ctx.continueAsNew(n + 1))
    })
    const holdfast = await openWorking([loop])
    await (await holdfast.start(loop, 1)).result()
    expect(seen).toEqual([undefined, undefined, undefined])
  })

  it('WC-A5 continueAs goes on as another workflow, also where this process does not have it', async () => {
    const { open, after } = virtualWorld()
    const review = workflow('review', (_ctx, n: number) => `reviewed ${n}`)
    const write = workflow('write', (ctx, n: number) => ctx.continueAs(review, n * 2))
    const writer = await open({ workflows: [write] })
    await writer.work()
    const run = await writer.start(write, 21)
    const reviewer = await open({ workflows: [review] })
    await reviewer.work()
    expect(await after(reviewer.run(run).result())).toBe('reviewed 42')
    expect(await reviewer.get(run)).toMatchObject({ type: 'review', status: 'succeeded' })
  })

  it.each([null, undefined, {}, 'loop'])(
    'as %j is refused, and does not begin the same workflow again',
    async (target) => {
      const { open, after } = virtualWorld()
      let performed = 0
      const loop = workflow('loop', { retry: 'none' }, async (ctx): Promise<unknown> => {
        performed += 1
        return performed > 3 ? 'began again' : ctx.continueAs(target as never)
      })
      const holdfast = await open({ workflows: [loop] })
      await holdfast.work()
      const run = await holdfast.start(loop)
      await expect(after(run.result())).rejects.toMatchObject({ cause: { code: 'INVALID_OPTION' } })
      expect(performed).toBe(1)
    },
  )

  it('as a workflow where a live run has its key fails the run, and the other is unharmed', async () => {
    const { open, after } = virtualWorld()
    const long = workflow('long', async (ctx, _n: number) => void (await ctx.sleep('1 day')))
    const short = workflow('short', (ctx, n: number) => ctx.continueAs(long, n))
    const holdfast = await open({ workflows: [short, long] })
    await holdfast.work()
    const other = await holdfast.start(long, 1, { key: 'a' })
    const run = await holdfast.start(short, 1, { key: 'a' })
    const error = (await after(run.result()).catch((reason: unknown) => reason)) as HoldfastError
    expect([error.code, (error.cause as HoldfastError).code]).toEqual(['RUN_FAILED', 'RUN_EXISTS'])
    expect(await other.status()).toBe('waiting')
    expect(await holdfast.get(run)).toMatchObject({ type: 'short', status: 'failed' })
  })

  it('refuses an input that the other workflow would refuse', async () => {
    const { open, after } = virtualWorld()
    const picky = workflow(
      'picky',
      { input: { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'never' }] }) } } },
      () => 1,
    )
    const sloppy = workflow('sloppy', { retry: { maxAttempts: 1 } }, (ctx) => ctx.continueAs(picky, 'x'))
    const holdfast = await open({ workflows: [picky, sloppy] })
    await holdfast.work()
    const run = await holdfast.start(sloppy)
    const error = (await after(run.result()).catch((reason: unknown) => reason)) as HoldfastError
    expect((error.cause as HoldfastError).code).toBe('INVALID_INPUT')
  })
})

describe.each(everyStore)('a loop of 10,000 rounds on the $name store', ({ make }) => {
  it('WC-A5 reads one entry a round, however many came before', { timeout: 120_000 }, async () => {
    const { open, store } = await make()
    const rounds = 2_000
    const loop: Workflow<number, number> = workflow('loop', async (ctx, n: number): Promise<number> => {
      await ctx.step('work', () => n)
      return n < rounds ? ctx.continueAsNew(n + 1) : n
    })
    const holdfast = await open({ workflows: [loop] })
    await holdfast.work()
    const run = await holdfast.start(loop, 1)
    expect(await run.result()).toBe(rounds)
    const [row] = await store.get([run.id])
    expect(row).toMatchObject({ status: 'succeeded', seq: 2 * rounds + 1, base: 2 * rounds - 1 })
  })
})

describe.each(everyStore)('a run on the $name store that begins anew beside calls', ({ make }) => {
  it('has performed and recorded each of them before', async () => {
    const { open, store } = await make()
    const done: string[] = []
    const note = (what: string) => (): number => done.push(what)
    const flow: Workflow<number, string> = workflow('beside', async (ctx, round: number): Promise<string> => {
      if (round === 2) return 'done'
      void ctx.step('plain', note('plain'))
      void ctx.step('undoable', note('undoable'), { undo: () => undefined })
      void ctx.step(
        'flaky',
        ({ attempt }) => {
          if (attempt < 3) throw new Error('Not yet')
          done.push('flaky')
        },
        { retry: { initial: 5, jitter: { mode: 'none' } } },
      )
      if (store.capabilities.transactions) void ctx.transaction('tx', note('tx'))
      return ctx.continueAsNew(2)
    })
    const holdfast = await open({ workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow, 1)
    expect(await run.result()).toBe('done')
    const names = ['flaky', 'plain', ...(store.capabilities.transactions ? ['tx'] : []), 'undoable']
    expect(done.toSorted()).toEqual(names)
    const journal = await holdfast.journal(run)
    const recorded = journal.filter(({ kind }) => kind === 'step-succeeded').map(({ name }) => name)
    expect(new Set(recorded)).toEqual(new Set(names))
  })
})
