// A deployment replaces workers one by one: for a while old code meets runs that newer code has continued.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { keepLines } from './open.ts'
import { virtualWorld } from './virtual-world.ts'

const older = workflow('order', async (ctx) => {
  const charged = await ctx.step('charge', () => 'charged')
  await ctx.sleep('1 min')
  return [charged, await ctx.step('ship', () => 'shipped')]
})

const newer = workflow('order', async (ctx) => {
  const charged = await ctx.step('charge', () => 'charged')
  const checked = ctx.patched('fraud') ? await ctx.step('fraud-check', () => 'checked') : 'unchecked'
  await ctx.sleep('1 min')
  return [charged, checked, await ctx.step('ship', () => 'shipped')]
})

describe('a run that newer code has continued with ctx.patched', () => {
  it('is left by older code to workers that know the change, is never paused meanwhile, and ends', async () => {
    const { clock, open, after } = virtualWorld()
    const first = await open({ workflows: [newer] })
    await first.work()
    const { id } = await first.start(newer)
    await clock.advance('1s')
    await after(first.close())
    const logger = keepLines()
    const old = await open({ workflows: [older], logger })
    await old.work()
    await clock.advance('5 min')
    expect(['pending', 'running', 'waiting']).toContain(await old.run(id).status())
    const said = logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message)
    expect(said).toEqual([
      expect.stringMatching(/is left to others: newer code has continued it with the change "fraud"/),
    ])
    // The old worker goes on with runs of its own code.
    const own = await old.start(older)
    expect(await after(own.result())).toEqual(['charged', 'shipped'])
    const second = await open({ workflows: [newer] })
    await second.work()
    expect(await after(second.run(id).result())).toEqual(['charged', 'checked', 'shipped'])
    expect((await second.journal(id)).map(({ kind }) => kind)).not.toContain('paused')
  })

  it('is paused as drift at once if the code changed before that change: no newer code is missing', async () => {
    const renamed = workflow('order', async (ctx) => {
      await ctx.step('debit', () => 'charged')
      if (ctx.patched('fraud')) await ctx.step('fraud-check', () => 'checked')
      await ctx.sleep('1 min')
    })
    const { clock, open, after } = virtualWorld()
    const first = await open({ workflows: [newer] })
    await first.work()
    const { id } = await first.start(newer)
    await clock.advance('1s')
    await after(first.close())
    const now = await open({ workflows: [renamed] })
    await now.work()
    await clock.advance('7 min')
    const { status, pause } = await now.get(id)
    expect([status, pause?.reason]).toEqual(['paused', 'drift'])
    expect(pause?.note).not.toContain('Newer code')
  })

  it('is left to a body that knows the change and takes its time to reach it', async () => {
    const { clock, open, after, pause } = virtualWorld()
    let isSlow = false
    const slow = workflow('order', async (ctx) => {
      await ctx.step('charge', () => 'charged')
      if (isSlow) await pause(20_000)
      const checked = ctx.patched('fraud') ? await ctx.step('fraud-check', () => 'checked') : 'unchecked'
      await ctx.sleep('1 min')
      return checked
    })
    const first = await open({ workflows: [slow] })
    await first.work()
    const { id } = await first.start(slow)
    await clock.advance('1s')
    await after(first.close())
    isSlow = true
    const logger = keepLines()
    const second = await open({ workflows: [slow], logger })
    await second.work()
    expect(await after(second.run(id).result())).toBe('checked')
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('is paused as drift, and names the change, if no worker knows it any more: the change was taken back', async () => {
    const { clock, open, after } = virtualWorld()
    const first = await open({ workflows: [newer] })
    await first.work()
    const { id } = await first.start(newer)
    await clock.advance('1s')
    await after(first.close())
    const old = await open({ workflows: [older] })
    await old.work()
    await clock.advance('20 min')
    expect(await old.get(id)).toMatchObject({
      status: 'paused',
      pause: {
        reason: 'drift',
        note: expect.stringMatching(/continued it with the change "fraud": deploy that/) as string,
      },
    })
  })

  it('is left to newer workers for a while after it is due, however long ago newer code has continued it', async () => {
    const slow = (isNewer: boolean) =>
      workflow('slow', async (ctx) => {
        await ctx.step('charge', () => 'charged')
        if (isNewer && ctx.patched('fraud')) await ctx.step('fraud-check', () => 'checked')
        await ctx.sleep('20 min')
        await ctx.step('ship', () => 'shipped')
        await ctx.sleep('30 min')
        return isNewer
      })
    const slowNewer = slow(true)
    const { clock, open, after } = virtualWorld()
    const first = await open({ workflows: [slowNewer] })
    await first.work()
    const { id } = await first.start(slowNewer)
    await clock.advance('1s')
    await after(first.close())
    const old = await open({ workflows: [slow(false)] })
    await old.work()
    await clock.advance('30 min')
    expect(['pending', 'running']).toContain(await old.run(id).status())
    const second = await open({ workflows: [slowNewer] })
    await second.work()
    await clock.advance('2 min')
    await after(second.close())
    expect(await old.run(id).status()).toBe('waiting')
    // Newer code has gone on with it: the old worker meets it anew.
    await clock.advance('40 min')
    expect(['pending', 'running']).toContain(await old.run(id).status())
    await clock.advance('10 min')
    expect((await old.get(id)).pause?.reason).toBe('drift')
  })
})
