import { describe, expect, it } from 'vitest'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

describe('a body that works without steps', () => {
  it('SW-A4 SW-P2 learns of it by its signal and by isCancelled, and changes nothing if it does not listen', async () => {
    const rig = new FunctionRig()
    let end: (value: string) => void = () => undefined
    const seen: unknown[] = []
    const flow = workflow('cancel.job', async (ctx) => {
      ctx.abortSignal.addEventListener('abort', () => seen.push(ctx.abortSignal.reason, ctx.isCancelled()))
      seen.push(ctx.isCancelled())
      await new Promise<string>((resolve) => (end = resolve))
      ctx.log('nobody hears this')
      await ctx.step('nobody does this', () => seen.push('done'))
      return 'done all the same'
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('stop')
    expect(seen).toEqual([false, expect.objectContaining({ code: 'RUN_CANCELLED' }), true])
    end('ignored')
    await rig.quiet()
    expect(seen).toHaveLength(3)
    expect(await held.story()).toEqual(['started', 'cancelled'])
    expect(rig.lines).toEqual([])
  })

  it('gives back what it holds when it is cancelled', async () => {
    const rig = new FunctionRig()
    const held: string[] = []
    const flow = workflow('cancel.resource', (ctx) =>
      ctx.withResource(
        () => held.push('acquired'),
        () => held.push('released'),
        () => ctx.step('a', rig.gated),
      ),
    )
    const run = await (await rig.start(flow)).begin()
    await run.cancel()
    expect(held).toEqual(['acquired'])
    await rig.succeed('a')
    expect(held).toEqual(['acquired', 'released'])
    expect(await run.status()).toBe('cancelled')
  })

  it('learns that its run goes on elsewhere', async () => {
    const rig = new FunctionRig()
    let signal: AbortSignal | null = null
    const flow = workflow('cancel.lost', (ctx) => {
      signal = ctx.abortSignal
      return new Promise(() => undefined)
    })
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    expect(signal).toMatchObject({ aborted: true, reason: { message: 'The process died' } })
  })
})
