// The summary of messages that a run has not read: whether a wait has asked for a name, and what it costs to know.

import { expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { changed, virtualWorld } from './virtual-world.ts'

it('a name for which only an earlier life of the run has asked is not awaited', async () => {
  const lives = workflow('lives', async (ctx, life: number): Promise<void> => {
    if (life === 1) {
      await ctx.receive('early')
      return ctx.continueAsNew(2)
    }
    await ctx.receive('late')
  })
  const { clock, open } = virtualWorld()
  const holdfast = await open({ workflows: [lives] })
  await holdfast.work()
  const { id } = await holdfast.start(lives, 1)
  await holdfast.signal(id, 'early')
  await clock.advance('1s')
  await holdfast.pause(id)
  await holdfast.signal(id, 'early')
  await holdfast.signal(id, 'late')
  expect((await holdfast.unread(id)).names).toMatchObject([
    { name: 'early', isAwaited: false },
    { name: 'late', isAwaited: true },
  ])
})

it('a long journal is read in part, and a name is not called misspelt then', async () => {
  const heavy = workflow('heavy', async (ctx) => {
    await ctx.receive('first')
    for (let step = 0; step < 40; step += 1) await ctx.step(`${step}`, () => 'x'.repeat(600_000))
    await ctx.receive('last')
  })
  const { clock, open, store } = virtualWorld()
  let loads = 0
  const counted = changed(store, {
    load: (...request) => {
      loads += 1
      return store.load(...request)
    },
  })
  const holdfast = await open({ workflows: [heavy] })
  await holdfast.work()
  const { id } = await holdfast.start(heavy)
  await holdfast.signal(id, 'first')
  await clock.advance('5s')
  const reader = await open({ workflows: [heavy], store: counted })
  await reader.signal(id, 'first')
  loads = 0
  expect((await reader.unread(id)).names).toMatchObject([{ name: 'first', isAwaited: true }])
  expect(loads).toBe(2)
  await reader.signal(id, 'lst')
  loads = 0
  expect((await reader.unread(id)).names).toMatchObject([{ isAwaited: true }, { name: 'lst', isAwaited: true }])
  expect(loads).toBeLessThanOrEqual(17)
})
