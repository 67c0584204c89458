// Code that changed under a live run: the run is paused with a diff, and goes on by the old code or by a repair.

import { describe, expect, it } from 'vitest'
import { workflow, type Context, type HoldfastError } from 'holdfast'
import { kindsOf, virtualWorld, type VirtualWorld } from './virtual-world.ts'

const first = workflow('order', async (ctx) => {
  await ctx.step('reserve', () => 'shelf 3')
  const paid = await ctx.step('charge', () => 10)
  await ctx.sleep('1 day')
  return paid
})

const second = (body: (ctx: Context) => Promise<unknown>) => workflow('order', body)

/** A run that began with the first code and is paused, because other code took it up. */
async function drifted({ open, clock, after }: VirtualWorld, body: (ctx: Context) => Promise<unknown>) {
  const before = await open({ workflows: [first] })
  await before.work()
  const run = await before.start(first)
  await clock.advance('1 min')
  await after(before.close())
  const now = await open({ workflows: [second(body)] })
  const worker = await now.work()
  await clock.advance('2 days')
  return { now, run: now.run(run), worker }
}

const renamed = async (ctx: Context): Promise<unknown> => {
  await ctx.step('reserve', () => 'nowhere')
  return ctx.step('pay', () => 20)
}

describe('drift', () => {
  it('parks the run with a diff that names the entry, the call, its file and its line', async () => {
    const world = virtualWorld()
    const { now, run } = await drifted(world, renamed)
    expect(await run.status()).toBe('paused')
    const last = (await now.journal(run)).at(-1)
    expect(last).toMatchObject({
      kind: 'paused',
      meta: {
        reason: 'drift',
        recorded: { seq: 3, kind: 'step-succeeded', name: 'charge' },
        found: [{ kind: 'step', name: 'pay', place: expect.stringMatching(/repair\.test\.ts:\d+:\d+$/) as string }],
      },
    })
    const { message } = (last?.meta ?? {}) as { message: string }
    expect(message).toContain('charge')
    expect(message).toContain('pay')
    expect(message).toMatch(/repair\.test\.ts:\d+/)
  })

  it('HE-V3 the old code lets it go on as if nothing had been', async () => {
    const world = virtualWorld()
    const { now, run, worker } = await drifted(world, renamed)
    await worker.stop()
    const before = await world.open({ workflows: [first] })
    await before.work()
    await now.resume(run)
    expect(await world.after(before.run(run).result())).toBe(10)
  })

  it('a repair drops what the new code does not ask for', async () => {
    const world = virtualWorld()
    const { now, run } = await drifted(world, renamed)
    await now.resume(run, { note: 'charged by hand', amend: [{ seq: 3, drop: true }] })
    expect(await world.after(run.result())).toBe(20)
    expect((await kindsOf(now, run)).slice(-4)).toEqual(['amended', 'resumed', 'step-succeeded', 'succeeded'])
  })

  it('a repair may also say what a step returned', async () => {
    const world = virtualWorld()
    const { now, run } = await drifted(world, async (ctx) => {
      const shelf = await ctx.step('reserve', () => 'nowhere')
      if (shelf === 'shelf 3') return ctx.step('pay', () => 0)
      return [shelf, await ctx.step('charge', () => 0)]
    })
    expect(await run.status()).toBe('paused')
    await now.resume(run, { amend: [{ seq: 2, result: 'shelf 4' }] })
    expect(await world.after(run.result())).toEqual(['shelf 4', 10])
  })

  it('a repair of what is no outcome, or of a run that is not paused, is refused', async () => {
    const world = virtualWorld()
    const { now, run } = await drifted(world, renamed)
    const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
      promise.catch((error: unknown) => (error as HoldfastError).code)
    expect(await codeOf(now.resume(run, { amend: [{ seq: 1, drop: true }] }))).toBe('INVALID_OPTION')
    expect(await codeOf(now.resume(run, { amend: [{ seq: 99, drop: true }] }))).toBe('INVALID_OPTION')
    await now.resume(run, { amend: [{ seq: 3, drop: true }] })
    expect(await codeOf(now.resume(run, { amend: [{ seq: 3, drop: true }] }))).toBe('WRONG_STATUS')
  })

  it('patched lets code change under live runs: old ones go the old way, new ones the new', async () => {
    const world = virtualWorld()
    const { now, run } = await drifted(world, async (ctx) => {
      await ctx.step('reserve', () => 'nowhere')
      const paid = ctx.patched('pay-in-parts') ? await ctx.step('pay', () => 20) : await ctx.step('charge', () => 0)
      await ctx.sleep('1 day')
      return paid
    })
    expect(await world.after(run.result())).toBe(10)
    const fresh = await now.start('order')
    await world.clock.advance('2 days')
    expect(await fresh.result()).toBe(20)
    expect(await kindsOf(now, fresh)).toContain('patched')
    expect(await kindsOf(now, run)).not.toContain('patched')
  })
})
