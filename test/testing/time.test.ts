// Time in a test of a workflow: it stands still until the test moves it, and a month takes a moment.

import { expect, it } from 'vitest'
import { workflow } from '../../src/index.ts'
import { createTest } from '../../src/testing/index.ts'

const reminder = workflow('reminder', {}, async (ctx, days: number) => {
  const sentAt: string[] = []
  for (let day = 0; day < days; day += 1) {
    await ctx.sleep('1 day')
    sentAt.push(await ctx.step('send', () => ctx.run.type))
  }
  return sentAt.length
})

const approval = workflow('approval', {}, async (ctx) => {
  const first = await ctx.race({ ok: ctx.receive<string>('approved'), late: ctx.sleep('2 days') })
  return first.tag === 'late' ? 'expired' : first.value
})

const parent = workflow('parent', {}, async (ctx) => ctx.child(approval))

it('nothing happens before its time, and everything at its time', async () => {
  await using t = await createTest({ workflows: [reminder] })
  const run = await t.start(reminder, 3)
  await t.advance('2 days')
  expect(t.attempts('send')).toHaveLength(1)
  expect(t.attempts('send#2')).toHaveLength(1)
  expect(t.attempts('send#3')).toHaveLength(0)
  await t.advance('1 day')
  expect(await run.result()).toBe(3)
  expect(t.now.toISOString()).toBe('2030-01-04T00:00:00.000Z')
})

it('a year passes in one call', async () => {
  const yearly = workflow('yearly', {}, async (ctx) => {
    await ctx.sleep('365 days')
    return 'renewed'
  })
  await using t = await createTest({ workflows: [yearly] })
  const run = await t.start(yearly)
  await t.advance('365 days')
  expect(await run.result()).toBe('renewed')
})

it('after a second everything that is due within that second has happened: a sleep, a retry, a timeout', async () => {
  let attempts = 0
  const busy = workflow('busy', {}, async (ctx, kind: 'sleep' | 'retry' | 'timeout') => {
    if (kind === 'sleep') await ctx.sleep('1s')
    if (kind === 'retry') {
      const retry = { initial: '1s', jitter: { mode: 'none' } } as const
      const fail = (): void => {
        attempts += 1
        if (attempts === 1) throw new Error('not yet')
      }
      await ctx.step('fail', fail, { retry })
    }
    if (kind === 'timeout') await ctx.step('hang', () => new Promise(() => undefined), { timeout: '1s', retry: 'none' })
  })
  await using t = await createTest({ workflows: [busy], patience: 10 })
  const runs = await Promise.all([t.start(busy, 'sleep'), t.start(busy, 'retry'), t.start(busy, 'timeout')])
  await t.drain()
  await t.advance('999 ms')
  const statuses = (): Promise<readonly string[]> => Promise.all(runs.map((run) => run.status()))
  expect(await statuses()).toEqual(['waiting', 'running', 'running'])
  await t.advance('1 ms')
  expect(await statuses()).toEqual(['succeeded', 'succeeded', 'failed'])
})

it('two who let time pass at once let the time of both pass', async () => {
  await using t = await createTest({ workflows: [reminder] })
  const run = await t.start(reminder, 3)
  await Promise.all([t.advance('2 days'), t.advance('1 day')])
  expect(t.now.toISOString()).toBe('2030-01-04T00:00:00.000Z')
  expect(await run.status()).toBe('succeeded')
})

it('a caller that waits for the result gets it while the test moves time', async () => {
  await using t = await createTest({ workflows: [reminder] })
  const result = (await t.start(reminder, 60)).result()
  await t.advance('60 days')
  expect(await result).toBe(60)
})

it('drain lets happen what needs no time, and says what each run waits for', async () => {
  await using t = await createTest({ workflows: [approval, parent] })
  const run = await t.start(parent)
  const waiting = await t.drain()
  const child = waiting.find(({ type }) => type === 'approval')
  expect(waiting).toHaveLength(2)
  expect(waiting).toContainEqual({
    id: run.id,
    type: 'parent',
    status: 'waiting',
    waitsFor: [{ kind: 'run', id: child?.id }],
  })
  expect(child).toMatchObject({
    status: 'waiting',
    waitsFor: [
      { kind: 'signal', name: 'approved' },
      { kind: 'time', at: new Date('2030-01-03T00:00:00Z') },
    ],
  })
  expect(t.now.toISOString()).toBe('2030-01-01T00:00:00.000Z')
  await t.signal(child?.id ?? '', 'approved', 'by Ada')
  expect(await t.drain()).toEqual([])
  expect(await run.result()).toBe('by Ada')
})

it('drain with time goes on until every run has ended or waits for an outside caller', async () => {
  const forever = workflow('forever', {}, async (ctx) => ctx.receive('never'))
  await using t = await createTest({ workflows: [reminder, forever] })
  const run = await t.start(reminder, 30)
  await t.start(forever)
  const waiting = await t.drain({ time: true })
  expect(waiting.map(({ type, waitsFor }) => ({ type, waitsFor }))).toEqual([
    { type: 'forever', waitsFor: [{ kind: 'signal', name: 'never' }] },
  ])
  expect(await run.result()).toBe(30)
  expect(t.now.toISOString()).toBe('2030-01-31T00:00:00.000Z')
})

it('drain with time ends also where a run never does', async () => {
  await using t = await createTest({ workflows: [reminder] })
  await t.start(reminder, 100_000)
  const [run] = await t.drain({ time: true, atMost: '5 days' })
  expect(run?.waitsFor).toEqual([{ kind: 'time', at: new Date('2030-01-07T00:00:00Z') }])
  expect(t.now.toISOString()).toBe('2030-01-06T00:00:00.000Z')
})

it('drain names a token, and a run that is paused', async () => {
  const token = workflow('token', {}, async (ctx) => ctx.token<string>())
  await using t = await createTest({ workflows: [token, approval] })
  const completed = await t.start(token)
  const paused = await t.start(approval)
  await t.drain()
  await t.holdfast.pause(paused)
  const waiting = await t.drain({ time: true })
  const of = (type: string): unknown => waiting.find((run) => run.type === type)?.waitsFor
  expect(of('approval')).toEqual([{ kind: 'resume', reason: 'operator' }])
  expect(of('token')).toEqual([{ kind: 'token', token: expect.any(String) as string }])
  const [wait] = of('token') as readonly { token: string }[]
  await t.complete(wait?.token ?? '', 'done')
  await t.drain()
  expect(await completed.result()).toBe('done')
})

it('a run that takes too long fails at that very time', async () => {
  await using t = await createTest({ workflows: [approval] })
  const run = await t.start(approval, undefined, { timeout: '1h' })
  await t.advance('59 min')
  expect(await run.status()).toBe('waiting')
  await t.advance('1 min')
  expect(await run.status()).toBe('failed')
})

it('a step that is under way is asked to stop at that very time, and the run fails when its grace is over', async () => {
  const slow = workflow('slow', {}, async (ctx) => ctx.step('work', () => 1))
  await using t = await createTest({ workflows: [slow] })
  t.slow('work', '1 day')
  const run = await t.start(slow, undefined, { timeout: '1h' })
  await t.advance('59 min')
  expect(await run.status()).toBe('running')
  await t.advance('1 min')
  expect(await run.status()).toBe('running')
  await t.advance('30s')
  expect(await run.status()).toBe('failed')
})

it('a run that is cancelled while its step is under way hears of it at once', async () => {
  const heard: boolean[] = []
  const slow = workflow('slow', {}, async (ctx) =>
    ctx.step('work', ({ abortSignal }) => abortSignal.addEventListener('abort', () => heard.push(true))),
  )
  await using t = await createTest({ workflows: [slow] })
  t.slow('work', '1 day')
  const run = await t.start(slow)
  await t.drain()
  await t.cancel(run)
  await t.drain()
  expect(heard).toEqual([true])
  await t.drain({ time: true })
  expect(await run.status()).toBe('cancelled')
})

it('the same seed gives the same ids, and another one others', async () => {
  const chance = workflow('chance', {}, async (ctx) => ctx.uuid())
  const uuidOf = async (seed: number): Promise<unknown> => {
    await using t = await createTest({ workflows: [chance], seed })
    const run = await t.start(chance)
    await t.drain()
    return [run.id, await run.result()]
  }
  expect(await uuidOf(7)).toEqual(await uuidOf(7))
  expect(await uuidOf(7)).not.toEqual(await uuidOf(8))
})

it('an option that does not exist is refused', async () => {
  await expect(createTest({ workflow: [approval] } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await using t = await createTest({ workflows: [approval] })
  expect(() => t.drain({ times: true } as never)).toThrow(/Did you mean "time"/)
  expect(() => t.fail('x', { times: 0 })).toThrow(/whole number/)
  expect(() => t.fail('x', { when: 'later' } as never)).toThrow(/before/)
})
