import { describe, expect, it } from 'vitest'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

describe('a run that waits', () => {
  it('WC-A3 PQ-T1 holds no lease, is due in store time, and says when it was due and when it went on', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.sleep', async (ctx) => {
      const { scheduledAt, firedAt } = await ctx.sleep('1 day')
      const until = await ctx.sleepUntil(scheduledAt.getTime() + 5_000)
      return [scheduledAt, firedAt, until.scheduledAt]
    })
    const start = rig.clock.now()
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toEqual({ kind: 'parked' })
    expect(await rig.run(held.runId)).toMatchObject({ status: 'waiting', session: null, due: start + 86_400_000 })
    rig.clock.moveTo(start + 86_400_123)
    await held.goOn()
    await held.goOn('replayed')
    expect(await held.outcome()).toEqual({
      status: 'succeeded',
      value: [new Date(start + 86_400_000), new Date(start + 86_400_123), new Date(start + 86_405_000)],
    })
  })

  it('on a time that has passed goes on', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.past', async (ctx) => {
      await ctx.sleepUntil(new Date(0))
      await ctx.sleep(0)
      return 'on'
    })
    const held = await (await rig.start(flow)).begin()
    while (held.departure?.kind === 'parked') await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'on' })
  })

  it('on nothing that was not awaited, although that has begun, and on what was awaited once', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.lazy', async (ctx) => {
      void ctx.sleep('1 day')
      const wait = ctx.sleep('2 days')
      await Promise.all([wait, wait])
      await wait
    })
    const held = await (await rig.start(flow)).begin()
    const begun = ['started', 'waiting sleep#2', 'waiting sleep']
    expect(await held.story()).toEqual(begun)
    expect((await rig.run(held.runId)).due).toBe(rig.clock.now() + 2 * 86_400_000)
    await held.goOn()
    expect(await held.story()).toEqual([...begun, 'woken sleep#2', 'succeeded'])
  })

  it('on many things at once is parked with one commit, until the first of them', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.many', async (ctx) => {
      const order: number[] = []
      await Promise.all(
        Array.from({ length: 500 }, async (_, index) => {
          await ctx.sleep(1_000 * (500 - index))
          order.push(index)
        }),
      )
      return order
    })
    const start = rig.clock.now()
    const held = await (await rig.start(flow)).begin()
    expect(rig.commits).toHaveLength(1)
    expect((await rig.run(held.runId)).due).toBe(start + 1_000)
    rig.clock.moveTo(start + 250_000)
    await held.goOn('replayed')
    expect((await rig.run(held.runId)).due).toBe(start + 251_000)
    rig.clock.moveTo(start + 500_000)
    await held.goOn()
    expect(await held.outcome()).toEqual({
      status: 'succeeded',
      value: Array.from({ length: 500 }, (_, index) => 499 - index),
    })
  })

  it('goes on when its sleep is over while a step still runs', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.race', async (ctx) => {
      const slow = ctx.step('slow', rig.gated)
      const first = await Promise.race([slow, ctx.sleep('10s').then(() => 'timeout')])
      await ctx.step('after', () => 1)
      return [first, await slow]
    })
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toBeNull()
    await rig.pass(9_999)
    expect(await held.story()).toEqual(['started', 'waiting sleep'])
    await rig.pass(1)
    expect(await held.story()).toEqual(['started', 'waiting sleep', 'woken sleep', 'step-succeeded after'])
    await rig.succeed('slow', 'S')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['timeout', 'S'] })
  })

  it('whose race a step has won still replays with the sleep that lost', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.lost', async (ctx) => {
      const first = await Promise.race([ctx.step('quick', rig.gated), ctx.sleep('10s')])
      await ctx.sleep('1h')
      return first
    })
    const held = await (await rig.start(flow)).begin()
    await rig.succeed('quick', 'Q')
    await held.goOn('replayed')
    expect((await rig.run(held.runId)).status).toBe('waiting')
    await held.goOn('replayed')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'Q' })
    expect(await held.story()).toEqual([
      'started',
      'waiting sleep',
      'step-succeeded quick',
      'waiting sleep#2',
      'woken sleep',
      'woken sleep#2',
      'succeeded',
    ])
  })

  /** A rig in which a message comes with each of the first two commits that park a run. */
  function disturbed(): FunctionRig {
    let messages = 0
    const rig = new FunctionRig({
      onCommit: ({ status, runId }) => {
        if (status !== 'waiting' || messages === 2) return
        messages += 1
        rig.store.deliver(runId)
      },
    })
    return rig
  }

  it('does not look again when a message came that no wait asks for', async () => {
    const rig = disturbed()
    const flow = workflow('test.undisturbed', (ctx) => ctx.sleep('1 day'))
    const held = await (await rig.start(flow)).begin()
    expect(rig.commits).toMatchObject([{ status: 'waiting', parkIf: { inbox: 0, wakeNames: [] } }])
    expect(held.departure).toEqual({ kind: 'parked' })
  })

  it('looks again when a message came while it was being parked', async () => {
    const rig = disturbed()
    const flow = workflow('test.again', async (ctx) => {
      await ctx.race({ received: ctx.receive('go'), late: ctx.sleep('1 day') })
      return 'woken'
    })
    const held = await (await rig.start(flow)).begin()
    expect(rig.commits.map(({ parkIf }) => parkIf?.wakeNames)).toEqual([['go'], ['go'], ['go']])
    expect(rig.commits.map(({ status, append }) => [status, append.length])).toEqual([
      ['waiting', 1],
      ['waiting', 0],
      ['waiting', 0],
    ])
    expect(held.departure).toEqual({ kind: 'parked' })
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'woken' })
  })

  it('is replayed when its code went on beside the wait, and says so once', async () => {
    const rig = new FunctionRig()
    let goOn: () => void = () => undefined
    const flow = workflow('test.spoiled', async (ctx) => {
      const beside = async (): Promise<void> => {
        await new Promise<void>((resolve) => (goOn = resolve))
        ctx.log('beside')
        await ctx.step('beside', rig.gated)
      }
      void beside()
      await ctx.sleep('1 day')
      return 'done'
    })
    const held = await (await rig.start(flow)).begin()
    expect(held.frame.seq).toBe(2)
    goOn()
    await rig.quiet()
    expect(held.frame.seq).toBeNull()
    expect(rig.gates).toEqual([])
    expect(rig.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
  })

  it('is replayed when its body came to its end beside the wait', async () => {
    const rig = new FunctionRig()
    let end: (value: string) => void = () => undefined
    let bodies = 0
    const flow = workflow('test.ended', async (ctx) => {
      bodies += 1
      void ctx.sleep('1 day').then(() => undefined)
      return bodies === 1 ? new Promise<string>((resolve) => (end = resolve)) : 'ended'
    })
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toEqual({ kind: 'parked' })
    end('missed')
    await rig.quiet()
    expect(held.frame.seq).toBeNull()
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'ended' })
  })
})
