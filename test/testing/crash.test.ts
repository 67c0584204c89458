// A process of a test dies as by kill -9: nothing that it waits for ever comes, and another one goes on.

import { expect, it } from 'vitest'
import { workflow } from '../../src/index.ts'
import { createTest } from '../../src/testing/index.ts'

it('what was recorded stays, and what was under way is done again with the same key', async () => {
  const done: string[] = []
  const order = workflow('order', {}, async (ctx) => {
    await ctx.step('charge', () => void done.push('charge'))
    await ctx.step('pack', () => void done.push('pack'))
    return done.length
  })
  await using t = await createTest({ workflows: [order] })
  t.slow('pack', '1h', { times: 1 })
  const run = await t.start(order)
  await t.advance('30 min')
  await t.crash()
  await t.drain()
  expect(await run.result()).toBe(3)
  expect(done).toEqual(['charge', 'pack', 'pack'])
  const [first, second] = t.attempts('pack')
  expect([first?.outcome, second?.outcome]).toEqual(['died', 'succeeded'])
  expect(first?.idempotencyKey).toBe(second?.idempotencyKey)
  const journal = await t.journal(run)
  expect(journal.filter(({ kind }) => kind === 'crashed')).toHaveLength(1)
  await t.advance('1h')
  expect(t.attempts()).toHaveLength(3)
})

it('nothing of the process that died ever shows: no rejection, no finally, no late result', async () => {
  const seen: string[] = []
  const order = workflow('order', {}, async (ctx) => {
    try {
      await ctx.step('charge', () => 1)
      seen.push('went on')
    } catch {
      seen.push('threw')
    } finally {
      seen.push('finally')
    }
  })
  await using t = await createTest({ workflows: [order] })
  t.slow('charge', '1 min', { times: 1 })
  await t.start(order)
  await t.drain()
  await t.crash()
  await t.drain({ time: true })
  await t.advance('1h')
  expect(seen).toEqual(['went on', 'finally'])
})

it('a run that waits survives, and so does what is sent while nobody is there', async () => {
  const approval = workflow('approval', {}, async (ctx) => ctx.receive<string>('approved'))
  await using t = await createTest({ workflows: [approval] })
  const run = await t.start(approval)
  await t.drain()
  const crashing = t.crash({ away: '1h' })
  await t.signal(run, 'approved', 'Ada')
  await crashing
  await t.drain()
  expect(await run.result()).toBe('Ada')
  expect(t.now.toISOString()).toBe('2030-01-01T01:00:00.000Z')
})

it('crashes in a row and crashes of an idle process do no harm', async () => {
  const sleeper = workflow('sleeper', {}, async (ctx) => {
    await ctx.sleep('1 day')
    return ctx.step('wake', () => 'up')
  })
  await using t = await createTest({ workflows: [sleeper] })
  await t.crash()
  const run = await t.start(sleeper)
  for (let crash = 0; crash < 20; crash += 1) await t.crash()
  await t.advance('1 day')
  expect(await run.result()).toBe('up')
  expect((await t.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
})

it('a run that is replayed whenever it goes on sees the same', async () => {
  const calls: string[] = []
  const twice = workflow('twice', {}, async (ctx) => {
    calls.push('body')
    const first = await ctx.step('first', () => 1)
    await ctx.sleep('1 day')
    return first
  })
  await using t = await createTest({ workflows: [twice], cachedRuns: 0 })
  const run = await t.start(twice)
  await t.advance('1 day')
  expect(await run.result()).toBe(1)
  expect(calls).toEqual(['body', 'body'])
  expect(t.attempts('first')).toHaveLength(1)
})

it('a worker that cannot begin is reported to the code that makes the test', async () => {
  const same = workflow('same', {}, async () => 1)
  const other = workflow('same', {}, async () => 2)
  await expect(createTest({ workflows: [same, other] })).rejects.toMatchObject({ code: 'WORKFLOW_EXISTS' })
})

it('after close nothing goes on, and a caller that waits gets an error', async () => {
  const sleeper = workflow('sleeper', {}, async (ctx) => ctx.sleep('1 day'))
  const t = await createTest({ workflows: [sleeper] })
  const result = (await t.start(sleeper)).result()
  const refused = result.catch((error: unknown) => error)
  await t.close()
  await t.close()
  expect(await refused).toMatchObject({ code: 'CLOSED' })
})
