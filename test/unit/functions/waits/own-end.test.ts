// A run cannot wait for its own end: that would be for ever.

import { describe, expect, it } from 'vitest'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../../support/function-rig.ts'

describe('a wait of a run for itself', () => {
  it('is refused, alone and in a race, and the body may catch that', async () => {
    const rig = new FunctionRig()
    const flow = workflow('own.end', async (ctx) => {
      const alone = await ctx.waitFor(ctx.run.id).then(String, (error: unknown) => error)
      const raced = await ctx.race({ own: ctx.waitFor(ctx.run), late: ctx.sleep('1h') }).then(String, (e: unknown) => e)
      expect([alone, raced]).toMatchObject([{ code: 'INVALID_OPTION' }, { code: 'INVALID_OPTION' }])
      await ctx.step('after', rig.gated)
      return 'caught'
    })
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    await held.goOn()
    await rig.succeed('after')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'caught' })
  })

  it('fails the run if the body does not catch it', async () => {
    const rig = new FunctionRig()
    const flow = workflow('own.end.thrown', { retry: 'none' }, (ctx) => ctx.waitFor(ctx.run.id))
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toMatchObject({
      status: 'failed',
      value: { code: 'INVALID_OPTION', message: expect.stringContaining('waits for its own end') as string },
    })
  })
})
