// Steps in a test of a workflow: they fail and take long when the test wants it, real work is waited for, and every attempt
// is noted.

import { expect, it } from 'vitest'
import { fatal, workflow } from '../../src/index.ts'
import { createTest } from '../../src/testing/index.ts'

const charge = workflow('charge', { retry: { maxAttempts: 3, initial: '1 min' } }, async (ctx, total: number) =>
  ctx.step('charge', ({ attempt }) => ({ total, attempt }), { timeout: '5 min' }),
)

it('a step fails as often as the test says, and is tried again after its delays', async () => {
  await using t = await createTest({ workflows: [charge] })
  t.fail('charge', { times: 2, error: new Error('The bank is away') })
  const run = await t.start(charge, 99)
  await t.drain()
  expect(t.attempts().map(({ outcome }) => outcome)).toEqual(['failed'])
  await t.drain({ time: true })
  expect(await run.result()).toEqual({ total: 99, attempt: 3 })
  expect(t.attempts('charge').map(({ attempt, outcome }) => ({ attempt, outcome }))).toEqual([
    { attempt: 1, outcome: 'failed' },
    { attempt: 2, outcome: 'failed' },
    { attempt: 3, outcome: 'succeeded' },
  ])
  expect(new Set(t.attempts().map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
  expect(t.attempts()[0]?.error).toEqual(new Error('The bank is away'))
  expect(t.attempts()[2]?.result).toEqual({ total: 99, attempt: 3 })
  expect(t.attempts()[2]?.startedAt.getTime()).toBeGreaterThan(t.attempts()[1]?.endedAt?.getTime() ?? 0)
})

it('a step can fail after its work is done, and in one run only', async () => {
  const done: string[] = []
  const work = workflow('work', { retry: { initial: 1 } }, async (ctx, name: string) => {
    await ctx.step('do', () => void done.push(name))
  })
  await using t = await createTest({ workflows: [work] })
  const other = await t.start(work, 'other')
  await t.drain()
  const run = await t.start(work, 'run')
  t.fail('do', { run, when: 'after' })
  t.fail('do', { run: other })
  await t.drain({ time: true })
  expect(done).toEqual(['other', 'run', 'run'])
})

it('the undo of a step can fail, too', async () => {
  const undone: number[] = []
  const trip = workflow('trip', {}, async (ctx) => {
    await ctx.step('flight', () => 1, { undo: (_, { attempt }) => void undone.push(attempt) })
    throw fatal(new Error('No hotel'))
  })
  await using t = await createTest({ workflows: [trip] })
  t.fail('flight', { undo: true })
  const run = await t.start(trip)
  await t.drain({ time: true })
  expect(await run.status()).toBe('failed')
  expect(undone).toEqual([2])
  expect(t.attempts('flight').map(({ isUndo, outcome }) => ({ isUndo, outcome }))).toEqual([
    { isUndo: false, outcome: 'succeeded' },
    { isUndo: true, outcome: 'failed' },
    { isUndo: true, outcome: 'succeeded' },
  ])
})

it('a slow step takes its time on the clock of the test', async () => {
  await using t = await createTest({ workflows: [charge] })
  t.slow('charge', '4 min')
  const run = await t.start(charge, 99)
  const [waiting] = await t.drain()
  expect(waiting).toMatchObject({ status: 'running', waitsFor: [{ kind: 'step', name: 'charge' }] })
  await t.advance('4 min')
  expect(await run.result()).toEqual({ total: 99, attempt: 1 })
  const [attempt] = t.attempts()
  expect(Number(attempt?.endedAt) - Number(attempt?.startedAt)).toBe(240_000)
})

it('a step that is too slow times out, and its result comes too late', async () => {
  await using t = await createTest({ workflows: [charge] })
  t.slow('charge', '10 min', { times: 1 })
  const run = await t.start(charge, 99)
  await t.advance('5 min')
  expect(t.attempts().map(({ outcome }) => outcome)).toEqual(['timed-out'])
  await t.drain({ time: true })
  expect(await run.result()).toEqual({ total: 99, attempt: 2 })
  expect(t.attempts().map(({ outcome }) => outcome)).toEqual(['timed-out', 'succeeded'])
})

it('steps that wait for real things are waited for before time goes on', async () => {
  const real = workflow('real', {}, async (ctx) => {
    const one = ctx.step('one', () => new Promise((resolve) => setTimeout(() => resolve('one'), 20)), { timeout: '1s' })
    const two = ctx.step('two', () => new Promise((resolve) => setImmediate(() => resolve('two'))))
    return Promise.all([one, two])
  })
  await using t = await createTest({ workflows: [real] })
  const run = await t.start(real)
  await t.advance('1 day')
  expect(await run.result()).toEqual(['one', 'two'])
  expect(t.attempts('one')).toHaveLength(1)
})

it('a step that never returns is given up by the time of the test', async () => {
  const hanging = workflow('hanging', { retry: { maxAttempts: 1 } }, async (ctx) =>
    ctx.step('hangs', () => new Promise(() => undefined), { timeout: '1 min' }),
  )
  await using t = await createTest({ workflows: [hanging], patience: 10 })
  const run = await t.start(hanging)
  expect(await t.drain()).toMatchObject([{ waitsFor: [{ kind: 'step', name: 'hangs' }] }])
  await t.drain({ time: true })
  expect(await run.status()).toBe('failed')
})

it('notes whether a step looked at its idempotency key', async () => {
  const keys = workflow('keys', {}, async (ctx) => {
    await ctx.step('blind', ({ attempt }) => attempt)
    await ctx.step('careful', ({ idempotencyKey }) => idempotencyKey)
    await ctx.step('alive', (step) => {
      step.heartbeat()
      return [step.isCancelled(), step.isRetry, step.abortSignal.aborted]
    })
  })
  await using t = await createTest({ workflows: [keys] })
  await t.start(keys)
  await t.drain()
  expect(t.attempts().map(({ step, hasReadKey }) => [step, hasReadKey])).toEqual([
    ['blind', false],
    ['careful', true],
    ['alive', false],
  ])
  expect(t.attempts('careful')[0]?.result).toBe(t.attempts('careful')[0]?.idempotencyKey)
  expect(t.attempts('alive')[0]?.result).toEqual([false, false, false])
})
