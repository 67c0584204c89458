// What a run shows to others.

import { expect, test } from 'vitest'
import { workflow } from 'holdfast'
import { kindsOf, virtualWorld } from './virtual-world.ts'

test('the last exposed value can be asked for, also after the end, and is written once however often the body is replayed', async () => {
  const { open, after, clock } = virtualWorld()
  const showing = workflow('showing', async (ctx) => {
    ctx.expose('stage', { name: 'first' })
    await ctx.sleep('1 s')
    ctx.expose('other', 1)
    ctx.expose('stage', { name: 'second' })
    await ctx.sleep('1 min')
    ctx.expose('stage', { name: 'last' })
  })
  const holdfast = await open({ workflows: [showing] })
  await holdfast.work({ cachedRuns: 0 })
  const run = await holdfast.start(showing)
  expect(await holdfast.query(run, 'nothing')).toBeUndefined()
  await clock.advance('10 s')
  expect(await holdfast.query(run, 'stage')).toEqual({ name: 'second' })
  await after(run.result())
  expect(await holdfast.query(run, 'stage')).toEqual({ name: 'last' })
  expect(await holdfast.query(run, 'other')).toBe(1)
  expect((await kindsOf(holdfast, run)).filter((kind) => kind === 'exposed')).toHaveLength(4)
})
