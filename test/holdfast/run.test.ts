// The life of one run as its user sees it: started, asked for, read.

import { describe, expect, it } from 'vitest'
import { isHoldfastError, workflow } from 'holdfast'
import { gate, settled } from './gate.ts'
import { keepLines, open, openWorking } from './open.ts'
import { until } from '../support/until.ts'

const greet = workflow('demo.greet', async (ctx, name: string) => {
  const greeting = await ctx.step('greet', () => `Hello, ${name}`)
  await ctx.sleep(1)
  return { greeting }
})

describe('a run', () => {
  it('gives what its body returns', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start(greet, 'Ada')
    expect(run.created).toBe(true)
    expect(await run.result()).toEqual({ greeting: 'Hello, Ada' })
  })

  it('is started by name as well as by definition', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start('demo.greet', 'Ada')
    expect(await run.result()).toEqual({ greeting: 'Hello, Ada' })
  })

  it('PQ-A4 is stored when start returns, and start does not wait for it to be performed', async () => {
    const { passed, open: letGo } = gate()
    const slow = workflow('slow', (ctx) => ctx.step('wait', () => passed))
    const holdfast = await openWorking([slow])
    const run = await holdfast.start(slow)
    expect(run.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(await run.status()).toBe('running')
    letGo()
    await run.result()
    expect(await run.status()).toBe('succeeded')
  })

  it('is accepted while no worker runs, and performed once one does', async () => {
    const holdfast = await open({ workflows: [greet] })
    const run = await holdfast.start(greet, 'Ada')
    await settled()
    expect(await run.status()).toBe('pending')
    await holdfast.work()
    expect(await run.result()).toEqual({ greeting: 'Hello, Ada' })
  })

  it('PQ-A5 is read with its output once it has succeeded', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start(greet, 'Ada', { priority: 3 })
    await run.result()
    const view = await holdfast.get(run)
    expect(view).toMatchObject({ id: run.id, type: 'demo.greet', version: 1, status: 'succeeded', priority: 3 })
    expect(view.output).toEqual({ greeting: 'Hello, Ada' })
    expect(view).not.toHaveProperty('error')
    expect(view.endedAt).toBeInstanceOf(Date)
    expect(view.dueAt).toBeNull()
  })

  it('that failed for good is named in the log of its worker, once, whether or not code waits for its result', async () => {
    const logger = keepLines()
    const broken = workflow('broken.logged', (ctx) =>
      ctx.step('break', () => Promise.reject(new Error('no stock')), { retry: { maxAttempts: 2, initial: 1 } }),
    )
    const holdfast = await openWorking([broken], { logger })
    const { id } = await holdfast.start(broken)
    await until('it has failed', async () => (await holdfast.get(id)).status === 'failed')
    await settled()
    expect(logger.lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', expect.stringContaining('tries step "break" again in ')],
      ['warn', `Run ${id} of "broken.logged" failed: no stock`],
    ])
    expect(logger.lines.at(-1)?.details).toEqual({ run: id, type: 'broken.logged', error: expect.any(Error) as Error })
  })

  it('that failed names the code that waits for its result in the stack of the error', async () => {
    const broken = workflow('broken.traced', (ctx) =>
      ctx.step('break', () => Promise.reject(new Error('no')), { retry: { maxAttempts: 1 } }),
    )
    const holdfast = await openWorking([broken])
    const run = await holdfast.start(broken)
    const codeThatWaits = async (): Promise<unknown> => await run.result()
    const error = await codeThatWaits().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'RUN_FAILED' })
    expect((error as Error).stack).toMatch(/at (async )?codeThatWaits .*run\.test\.ts/)
  })

  it('PQ-A5 is read with its error once it has failed', async () => {
    const broken = workflow('broken', { retry: 'none' }, () => {
      throw new RangeError('Too far')
    })
    const holdfast = await openWorking([broken])
    const run = await holdfast.start(broken)
    await expect(run.result()).rejects.toMatchObject({
      code: 'RUN_FAILED',
      cause: { name: 'RangeError', message: 'Too far' },
    })
    const view = await holdfast.get(run.id)
    expect(view.status).toBe('failed')
    expect(view.error).toBeInstanceOf(RangeError)
    expect(view).not.toHaveProperty('output')
  })

  it('SW-E6 that has succeeded keeps status and result, and nothing is due any more', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start(greet, 'Ada')
    await run.result()
    const first = await holdfast.get(run)
    await settled()
    expect(await holdfast.get(run)).toEqual(first)
    expect(await holdfast.journal(run)).toHaveLength(5)
  })

  it('says what happened in its journal, in order and decoded', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start(greet, 'Ada')
    await run.result()
    const journal = await holdfast.journal(run)
    expect(journal.map(({ seq, kind, name }) => [seq, kind, name])).toEqual([
      [1, 'started', null],
      [2, 'step-succeeded', 'greet'],
      [3, 'waiting', 'sleep'],
      [4, 'woken', 'sleep'],
      [5, 'succeeded', null],
    ])
    expect(journal[0]?.data).toBe('Ada')
    expect(journal[1]).toMatchObject({ data: 'Hello, Ada', meta: { attempt: 1 } })
    expect(journal[4]?.data).toEqual({ greeting: 'Hello, Ada' })
  })

  it('says until when it waits', async () => {
    const patient = workflow('patient', async (ctx) => void (await ctx.sleepUntil(new Date('2100-01-01T00:00:00Z'))))
    const holdfast = await openWorking([patient])
    const run = await holdfast.start(patient)
    await settled()
    expect(await holdfast.get(run)).toMatchObject({ status: 'waiting', dueAt: new Date('2100-01-01T00:00:00Z') })
  })

  it('can be waited for by many, also after it has ended', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start(greet, 'Ada')
    const [first, second] = await Promise.all([run.result(), holdfast.run(run.id).result()])
    expect(second).toEqual(first)
    expect(await holdfast.run(run).result()).toEqual(first)
  })

  it('goes on when a caller gives up waiting for it', async () => {
    const { passed, open: letGo } = gate()
    const slow = workflow('slow', (ctx) => ctx.step('wait', () => passed.then(() => 'done')))
    const holdfast = await openWorking([slow])
    const run = await holdfast.start(slow)
    const error = await run.result({ timeout: 1 }).catch((thrown: unknown) => thrown)
    expect(isHoldfastError(error, 'RESULT_TIMEOUT')).toBe(true)
    expect(error).toMatchObject({ message: expect.stringContaining(run.id) as string, details: { runId: run.id } })
    letGo()
    expect(await run.result()).toBe('done')
  })

  it('PQ-E6 triggered again is a new run with fresh steps', async () => {
    let performed = 0
    const count = workflow('count', (ctx, by: number) => ctx.step('add', () => (performed += by)))
    const holdfast = await openWorking([count])
    const first = await holdfast.start(count, 1)
    expect(await first.result()).toBe(1)
    const second = await holdfast.start(count, 10)
    expect(await second.result()).toBe(11)
    expect(second.id).not.toBe(first.id)
    expect(await first.result()).toBe(1)
  })
})

describe('a body', () => {
  it('may be synchronous', async () => {
    const double = workflow('double', (_ctx, n: number) => n * 2)
    const holdfast = await openWorking([double])
    expect(await (await holdfast.start(double, 21)).result()).toBe(42)
  })

  it('may never await anything', async () => {
    const eager = workflow('eager', async (_ctx, n: number) => n + 1)
    const holdfast = await openWorking([eager])
    expect(await (await holdfast.start(eager, 1)).result()).toBe(2)
  })

  it('may return nothing', async () => {
    const silent = workflow('silent', () => undefined)
    const holdfast = await openWorking([silent])
    const run = await holdfast.start(silent)
    expect(await run.result()).toBeUndefined()
    expect(await holdfast.get(run)).toHaveProperty('output', undefined)
  })

  it('may be started with undefined when it has no input', async () => {
    const bare = workflow('bare', (ctx) => ctx.run.type)
    const holdfast = await openWorking([bare])
    const run = await holdfast.start(bare, undefined, { priority: 1 })
    expect(await run.result()).toBe('bare')
  })

  it('that throws something that is no error fails its run all the same', async () => {
    const odd = workflow('odd', { retry: 'none' }, () => {
      // oxlint-disable-next-line typescript/only-throw-error -- user code does this
      throw 'just text'
    })
    const holdfast = await openWorking([odd])
    const run = await holdfast.start(odd)
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_FAILED', cause: 'just text' })
  })

  it('that returns without awaiting a step ends when that has ended, and one line says where it was forgotten', async () => {
    const letGo = gate()
    const hasty = workflow('hasty', (ctx) => {
      void ctx.step('forgotten', () => letGo.passed)
      return 'early'
    })
    const logger = keepLines()
    const holdfast = await openWorking([hasty], { logger })
    const run = await holdfast.start(hasty)
    await settled()
    expect(await run.status()).toBe('running')
    letGo.open()
    expect(await run.result()).toBe('early')
    expect((await holdfast.journal(run)).map((entry) => entry.kind)).toEqual(['started', 'step-succeeded', 'succeeded'])
    const warnings = logger.lines.filter(({ message }) => message.includes('without awaiting'))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]?.message).toMatch(/step "forgotten" at \S*run\.test\.ts:\d+:\d+/)
  })
})
