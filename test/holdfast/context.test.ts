// What a body is lent: who it is, the application's services, and things that live no longer than a stay in memory.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { gate, settled, until } from './gate.ts'
import { keepLines, open, openWorking } from './open.ts'

describe('the context', () => {
  it('WC-A6 shows a body which run it is', async () => {
    const self = workflow('self', { version: 7 }, (ctx) => ctx.run)
    const holdfast = await openWorking([self])
    const run = await holdfast.start(self)
    expect(await run.result()).toEqual({ id: run.id, type: 'self', version: 7 })
  })

  it('WC-A6 lends the services of its own instance', async () => {
    const ask = workflow('ask', (ctx) => ctx.step('ask', () => (ctx.services as { answer(): number }).answer()))
    const lend = (answer: number) => ({ answer: () => answer })
    const [first, second] = [
      await openWorking([ask], { services: lend(42) }),
      await openWorking([ask], { services: lend(43) }),
    ]
    expect(await (await first.start(ask)).result()).toBe(42)
    expect(await (await second.start(ask)).result()).toBe(43)
  })

  it('WC-A6 acquires a resource anew on every stay in memory and releases it when the run is parked', async () => {
    const log: string[] = []
    let acquired = 0
    const lend = workflow('lend', (ctx) =>
      ctx.withResource(
        () => `connection ${(acquired += 1)}`,
        (connection) => log.push(`released ${connection}`),
        async (connection) => {
          const first = await ctx.step('first', () => `first by ${connection}`)
          await ctx.sleep(1)
          return [first, await ctx.step('second', () => `second by ${connection}`)]
        },
      ),
    )
    const holdfast = await openWorking([lend])
    const run = await holdfast.start(lend)
    expect(await run.result()).toEqual(['first by connection 1', 'second by connection 2'])
    expect(log).toEqual(['released connection 1', 'released connection 2'])
  })

  it('WC-A6 releases nested resources in reverse order, also when the body fails', async () => {
    const log: string[] = []
    const release = (name: string) => void log.push(`released ${name}`)
    const nested = workflow('nested', { retry: 'none' }, (ctx) =>
      ctx.withResource(
        () => 'outer',
        release,
        () =>
          ctx.withResource(
            () => 'inner',
            release,
            () => Promise.reject(new Error('Broken')),
          ),
      ),
    )
    const holdfast = await openWorking([nested])
    const run = await holdfast.start(nested)
    await expect(run.result()).rejects.toMatchObject({ cause: { message: 'Broken' } })
    expect(log).toEqual(['released inner', 'released outer'])
  })

  it('a resource that cannot be released is reported in the log and harms no result', async () => {
    const logger = keepLines()
    const sticky = workflow('sticky', (ctx) =>
      ctx.withResource(
        () => 'glue',
        () => Promise.reject(new Error('Stuck')),
        () => Promise.resolve('done'),
      ),
    )
    const holdfast = await openWorking([sticky], { logger })
    expect(await (await holdfast.start(sticky)).result()).toBe('done')
    expect(logger.lines).toContainEqual(expect.objectContaining({ level: 'error' }))
  })

  it('writes a log line once, to the logger and to the journal, however often the body is replayed', async () => {
    const logger = keepLines()
    const chatty = workflow('chatty', async (ctx) => {
      ctx.log('began', { by: 'hand' })
      ctx.progress(0.5, 'half')
      await ctx.sleep(1)
      ctx.log('woke')
    })
    const holdfast = await open({ workflows: [chatty], logger })
    await holdfast.work({ cachedRuns: 0 })
    const run = await holdfast.start(chatty)
    await run.result()
    expect(logger.lines.map(({ level, message }) => [level, message])).toEqual([
      ['info', 'began'],
      ['info', 'woke'],
    ])
    expect(logger.lines[0]?.details).toEqual({ run: run.id, type: 'chatty', data: { by: 'hand' } })
    const notes = (await holdfast.journal(run)).filter(({ kind }) => kind === 'logged' || kind === 'progressed')
    expect(notes.map(({ kind, meta, data }) => ({ kind, meta, data }))).toEqual([
      { kind: 'logged', meta: null, data: { message: 'began', data: { by: 'hand' } } },
      { kind: 'progressed', meta: { fraction: 0.5 }, data: 'half' },
      { kind: 'logged', meta: null, data: { message: 'woke' } },
    ])
  })

  it('gives a step what it needs: a key that stays, the attempt, a signal', async () => {
    const seen: unknown[] = []
    const tooled = workflow('tooled', { retry: { initial: 0 } }, (ctx) =>
      ctx.step('pay eu/1', ({ idempotencyKey, attempt, isRetry, abortSignal }) => {
        seen.push({ idempotencyKey, attempt, isRetry, aborted: abortSignal.aborted })
        if (attempt === 1) throw new Error('Once more')
      }),
    )
    const holdfast = await openWorking([tooled])
    const run = await holdfast.start(tooled)
    await run.result()
    const idempotencyKey = expect.stringMatching(new RegExp(`^${run.id}:[\\x21-\\x7e]+$`)) as string
    expect(seen).toEqual([
      { idempotencyKey, attempt: 1, isRetry: false, aborted: false },
      { idempotencyKey, attempt: 2, isRetry: true, aborted: false },
    ])
    expect((seen[0] as { idempotencyKey: string }).idempotencyKey).toBe(
      (seen[1] as { idempotencyKey: string }).idempotencyKey,
    )
  })

  it('runs steps that are awaited together side by side', async () => {
    const both = gate()
    const met: string[] = []
    const pair = workflow('pair', (ctx) => {
      const meet = (name: string) =>
        ctx.step(name, async () => {
          if (met.push(name) === 2) both.open()
          await both.passed
          return name
        })
      return Promise.all([meet('left'), meet('right')])
    })
    const holdfast = await openWorking([pair])
    expect(await (await holdfast.start(pair)).result()).toEqual(['left', 'right'])
  })

  it('WC-A2 lets a step begin now and be awaited later, also if it fails in between', async () => {
    const later = workflow('later', async (ctx) => {
      const early = ctx.step('early', () => Promise.reject(new Error('Early')), { retry: 'none' })
      const second = await ctx.step('second', () => settled().then(() => 'second'))
      return [second, await early.catch((error: Error) => error.message)]
    })
    const holdfast = await openWorking([later])
    expect(await (await holdfast.start(later)).result()).toEqual(['second', 'Early'])
  })

  it('keeps calls of one name apart, in order and by branch', async () => {
    const repeated = workflow('repeated', async (ctx) => {
      await ctx.step('pay', () => 1)
      await ctx.step('pay', () => 2)
      await ctx.branch('eu', (eu) => eu.step('pay', () => 3))
    })
    const holdfast = await openWorking([repeated])
    const run = await holdfast.start(repeated)
    await run.result()
    const names = (await holdfast.journal(run)).filter((entry) => entry.name !== null).map((entry) => entry.name)
    expect(names).toEqual(['pay', 'pay#2', 'eu/pay'])
  })

  it('a run that waits holds nothing: its status says so', async () => {
    const nap = workflow('nap', async (ctx) => void (await ctx.sleep('1h')))
    const holdfast = await openWorking([nap])
    const run = await holdfast.start(nap)
    await until(async () => (await run.status()) === 'waiting')
    expect((await holdfast.get(run)).dueAt).toBeInstanceOf(Date)
  })
})
