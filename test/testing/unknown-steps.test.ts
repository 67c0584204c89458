// A test that lets a step fail which there is not tests something else than it says: it gets an error.

import { expect, it } from 'vitest'
import { workflow } from '../../src/index.ts'
import { crashEverywhere, createTest } from '../../src/testing/index.ts'

const checkout = workflow('checkout', {}, async (ctx) => {
  await ctx.step('charge', () => 1)
  await ctx.receive('shipped')
  await ctx.step('mail', () => 2)
})

it('a misspelt step is reported as soon as all runs have ended, with what was probably meant', async () => {
  await using t = await createTest({ workflows: [checkout] })
  t.fail('chrage', { times: 2 })
  const run = await t.start(checkout)
  await t.drain()
  await run.signal('shipped')
  await expect(t.drain()).rejects.toMatchObject({
    code: 'STEP_UNKNOWN',
    message:
      't.fail("chrage") had no effect, because no run has reached a step "chrage". Did you mean "charge"?\n' +
      'The steps that ran are: "charge", "mail".',
  })
})

it('the same of advance, of drain with time, and of a step that is to be slow', async () => {
  const quick = workflow('quick', {}, async (ctx) => ctx.step('charge', () => 1))
  for (const act of ['advance', 'drain'] as const) {
    await using t = await createTest({ workflows: [quick] })
    t.slow('charge#', '1 min')
    await t.start(quick)
    await expect(act === 'advance' ? t.advance('1s') : t.drain({ time: true })).rejects.toThrow(/^t\.slow\("charge#"\)/)
  }
})

it('a step of quite another name may yet come: only close() is certain that it did not', async () => {
  const t = await createTest({ workflows: [checkout] })
  t.fail('refund')
  const run = await t.start(checkout)
  await t.drain()
  await run.signal('shipped')
  expect(await t.drain()).toEqual([])
  await expect(t.close()).rejects.toThrow('t.fail("refund") had no effect')
  await t.close()
})

it('a run that has not come to its step yet is waited for', async () => {
  const t = await createTest({ workflows: [checkout] })
  t.fail('mali')
  await t.start(checkout)
  expect(await t.drain()).toHaveLength(1)
  await expect(t.close()).rejects.toMatchObject({ code: 'STEP_UNKNOWN', details: { steps: ['mali'], ran: ['charge'] } })
})

it('a test in which nothing ran fails with that', async () => {
  const t = await createTest({ workflows: [checkout] })
  t.fail('charge')
  await expect(t.close()).rejects.toThrow('No step ran at all.')
})

it('a step that ran before, or in another run, is known', async () => {
  await using t = await createTest({ workflows: [checkout] })
  const run = await t.start(checkout)
  await t.drain()
  t.fail('charge', { run, undo: true })
})

it('crashEverywhere reports it for what happens during the run', async () => {
  const quick = workflow('quick', {}, async (ctx) => ctx.step('charge', () => 1))
  const during = (t: { fail(step: string): void }): void => t.fail('refund')
  await expect(crashEverywhere(quick, undefined, { during })).rejects.toMatchObject({ code: 'STEP_UNKNOWN' })
})
