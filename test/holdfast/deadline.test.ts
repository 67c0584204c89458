// Nothing succeeds when the time for the whole run is over, whichever session holds it and whatever it has heard.

import { expect, test } from 'vitest'
import { workflow } from 'holdfast'
import { kindsOf, virtualWorld } from './virtual-world.ts'

test('a run that ends after its time fails, with what its steps did recorded', async () => {
  const { open, pause, after } = virtualWorld()
  const slow = workflow('slow', (ctx) => ctx.step('work', () => pause(2_500).then(() => 'late')))
  const holdfast = await open({ workflows: [slow] })
  await holdfast.work({ lease: '5 min', heartbeat: '2 min' })
  const run = await holdfast.start(slow, undefined, { timeout: 500 })
  await expect(after(run.result())).rejects.toMatchObject({ cause: { code: 'RUN_TIMEOUT' } })
  expect(await kindsOf(holdfast, run)).toContain('failed')
  expect((await holdfast.get(run)).status).toBe('failed')
})

test('what such a run did is undone', async () => {
  const { open, pause, after } = virtualWorld()
  const undone: string[] = []
  const slow = workflow('slow', async (ctx) => {
    await ctx.step('book', () => pause(2_500), { undo: () => void undone.push('book') })
  })
  const holdfast = await open({ workflows: [slow] })
  await holdfast.work({ lease: '5 min', heartbeat: '2 min' })
  const run = await holdfast.start(slow, undefined, { timeout: 500 })
  await expect(after(run.result())).rejects.toMatchObject({ cause: { code: 'RUN_TIMEOUT' } })
  expect(undone).toEqual(['book'])
  expect((await kindsOf(holdfast, run)).slice(-2)).toEqual(['undone', 'failed'])
})

test('a run does not begin anew after its time', async () => {
  const { open, pause, after } = virtualWorld()
  const again = workflow('again', async (ctx, round: number) => {
    await ctx.step('work', () => pause(400))
    return ctx.continueAsNew(round + 1)
  })
  const holdfast = await open({ workflows: [again] })
  await holdfast.work({ lease: '5 min', heartbeat: '2 min' })
  const run = await holdfast.start(again, 1, { timeout: 1_000 })
  await expect(after(run.result())).rejects.toMatchObject({ cause: { code: 'RUN_TIMEOUT' } })
  expect((await kindsOf(holdfast, run)).filter((kind) => kind === 'continued')).toHaveLength(2)
})
