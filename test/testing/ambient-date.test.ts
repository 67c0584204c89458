// `Date` follows the time of a test in the code that the test runs, and nowhere else.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { workflow } from '../../src/index.ts'
import { crashEverywhere, createTest, silentLogger } from '../../src/testing/index.ts'

const stamps = workflow('stamps', {}, async (ctx, hours: number) => {
  const first = await ctx.step('first', () => new Date())
  await ctx.sleep(`${hours} hours`)
  const second = await ctx.step('second', async () => {
    await sleep(1)
    return Date.now()
  })
  return [first.toISOString(), new Date(second).toISOString()]
})

it('a step reads the time of the test, before and after it has awaited something', async () => {
  await using t = await createTest({ workflows: [stamps] })
  const run = await t.start(stamps, 3)
  await t.drain({ time: true })
  expect(await run.result()).toEqual(['2030-01-01T00:00:00.000Z', '2030-01-01T03:00:00.000Z'])
})

it('an undo, a condition and a body read it, too', async () => {
  const seen: Date[] = []
  const trip = workflow('trip', { retry: { maxAttempts: 1 } }, async (ctx) => {
    await ctx.step('book', () => 1, { undo: () => void seen.push(new Date()) })
    await ctx.until('ready', () => seen.push(new Date()) > 0)
    seen.push(new Date())
    throw new Error('No')
  })
  await using t = await createTest({
    workflows: [trip],
    bodyChecks: 'warn',
    logger: silentLogger,
  })
  await t.advance('1h')
  await t.start(trip)
  await t.drain({ time: true })
  expect(seen).toHaveLength(3)
  for (const date of seen) expect(date.toISOString()).toBe('2030-01-01T01:00:00.000Z')
})

it('two tests at once each have their own, and the machine keeps its own', async () => {
  await using one = await createTest({ workflows: [stamps] })
  await using other = await createTest({ workflows: [stamps] })
  await other.advance('5h')
  const runs = [await one.start(stamps, 1), await other.start(stamps, 1)]
  await Promise.all([one.drain({ time: true }), other.drain({ time: true })])
  expect(await runs[0]?.result()).toEqual(['2030-01-01T00:00:00.000Z', '2030-01-01T01:00:00.000Z'])
  expect(await runs[1]?.result()).toEqual(['2030-01-01T05:00:00.000Z', '2030-01-01T06:00:00.000Z'])
  expect(Math.abs(Date.now() - performance.timeOrigin - performance.now())).toBeLessThan(60_000)
})

it('dates stay dates, however code names them', async () => {
  const kinds = workflow('kinds', {}, async (ctx) =>
    ctx.step('look', () => {
      class Day extends Date {}
      const date = new Date()
      return [
        date instanceof Date,
        date.constructor === Date,
        Object.prototype.toString.call(date),
        new Day() instanceof Day,
        new Day().getTime() === Date.now(),
        new Date(2030, 0, 2).getDate(),
        Date.parse('2030-01-01'),
        Date().slice(11, 15),
      ]
    }),
  )
  await using t = await createTest({ workflows: [kinds] })
  await t.advance('1h')
  const run = await t.start(kinds)
  await t.drain()
  expect(await run.result()).toEqual([true, true, '[object Date]', true, true, 2, 1_893_456_000_000, '2030'])
})

it('the process has everything back when the last test is closed, in whatever order they are', async () => {
  const timers = await import('node:timers/promises')
  const namesOf = (owner: object): string => Object.getOwnPropertyNames(owner).toSorted().join()
  const all = (): readonly unknown[] => [
    Date,
    Date.now,
    Math.random,
    fetch,
    setTimeout,
    setImmediate,
    timers.setTimeout,
    namesOf(crypto),
    namesOf(performance),
  ]
  const before = all()
  const one = await createTest({ workflows: [stamps] })
  const other = await createTest({ workflows: [stamps] })
  expect(Date).not.toBe(before[0])
  await one.close()
  expect(Date).not.toBe(before[0])
  await other.close()
  await other.close()
  expect(all().map((now, at) => now === before[at])).toEqual(before.map(() => true))
  expect(new Date().constructor).toBe(Date)
})

it('a test that cannot be opened leaves nothing behind', async () => {
  const before = Date
  await expect(createTest({ workflows: [stamps], store: 'papyrus:scroll' })).rejects.toMatchObject({
    code: 'STORE_UNKNOWN',
  })
  expect(Date).toBe(before)
})

it('in crashEverywhere, what happens from outside and the check go by the time of the trial, too', async () => {
  const seen = new Set<string>()
  await crashEverywhere(stamps, 2, {
    during: async (t) => {
      await t.advance('1h')
      seen.add(`during ${new Date().toISOString()}`)
    },
    check: () => void seen.add(`check ${new Date().toISOString()}`),
  })
  expect([...seen]).toEqual(['during 2030-01-01T01:00:00.000Z', 'check 2030-01-01T02:00:00.000Z'])
})
