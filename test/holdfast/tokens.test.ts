// Tokens: somebody outside completes a wait, once.

import { expect, test } from 'vitest'
import { workflow } from 'holdfast'
import { virtualWorld } from './virtual-world.ts'

const approving = workflow('approving', async (ctx) => {
  const approval = ctx.token()
  await ctx.step('ask', () => approval.token)
  const asked = approval.token
  const { tag, value } = await ctx.race({ approval, late: ctx.sleep('1 day') })
  return [asked, tag, value]
})

test('a token completes its wait, once, and is the same on every replay', async () => {
  const { open, after, clock } = virtualWorld()
  const holdfast = await open({ workflows: [approving] })
  await holdfast.work({ parked: 0 })
  const run = await holdfast.start(approving)
  await clock.advance('1 s')
  const asked = (await holdfast.journal(run)).find(({ kind }) => kind === 'step-succeeded')
  const token = asked?.data as string
  expect(token).toMatch(/^[\w-]+$/)
  expect(await holdfast.complete(token, { by: 'Ada' })).toEqual({ outcome: 'delivered', runId: run.id })
  expect(await holdfast.complete(token, { by: 'Eve' })).toEqual({ outcome: 'already-completed', runId: run.id })
  expect(await after(run.result())).toEqual([token, 'approval', { by: 'Ada' }])
  expect(await holdfast.complete(token, 'late')).toMatchObject({ outcome: 'already-completed' })
})

test('a token can be completed before anybody waits, and tells nothing if it was changed', async () => {
  const { open, after, clock } = virtualWorld()
  const slow = workflow('slow', async (ctx) => {
    const one = ctx.token<string>()
    const other = ctx.token<string>()
    ctx.expose('tokens', [one.token, other.token])
    await ctx.sleep('1 min')
    return [await one, await other]
  })
  const holdfast = await open({ workflows: [slow] })
  await holdfast.work()
  const run = await holdfast.start(slow)
  await clock.advance('1 s')
  const [one, other] = (await holdfast.query(run, 'tokens')) as [string, string]
  expect(one).not.toBe(other)
  expect(await holdfast.complete(`${one.slice(0, -2)}AA`, 1)).toEqual({ outcome: 'invalid-token' })
  // The run waits on time and is woken all the same: it goes on waiting.
  await holdfast.complete(one, 'first')
  await holdfast.complete(other, 'second')
  expect(await after(run.result())).toEqual(['first', 'second'])
})
