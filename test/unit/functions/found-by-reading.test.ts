import { describe, expect, it } from 'vitest'
import { createScopes } from '../../../src/async-scopes.ts'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

describe('waits keep their identity', () => {
  it('however long the body awaits something of its own between them', async () => {
    const rig = new FunctionRig()
    let isLoaded = false
    const load = async (): Promise<void> => {
      if (!isLoaded) await new Promise((resolve) => setTimeout(resolve, 5))
      isLoaded = true
    }
    const flow = workflow('identity', async (ctx) => {
      const day = ctx.sleep('1 day')
      await load()
      const minute = ctx.sleep('1 min')
      await minute
      await day
      return 'slept'
    })
    const held = await rig.start(flow)
    await held.begin()
    while (held.departure === null) await rig.turn()
    expect((await rig.run(held.runId)).due).toBe(rig.clock.now() + 60_000)
    await held.goOn('replayed')
    expect((await held.story()).filter((line) => line.startsWith('woken'))).toEqual(['woken sleep#2'])
    expect((await rig.run(held.runId)).due).toBe(rig.clock.now() + 86_400_000 - 60_000)
    await held.goOn('replayed')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'slept' })
  })
})

describe('what was under way when a process died', () => {
  it('is undone although a cancellation comes with the answer to the commit that says that the run fails', async () => {
    let cancels: (() => void) | null = null
    const rig = new FunctionRig({
      onCommit: ({ append }) => {
        if (append.some(({ kind }) => kind === 'failing')) cancels?.()
      },
    })
    const undone: unknown[] = []
    const flow = workflow('cancelled.meanwhile', (ctx) =>
      Promise.all([
        ctx.step('flight', rig.gated, { undo: (id) => void undone.push(id) }),
        ctx.step('hotel', rig.gated, { retry: 'none' }),
      ]),
    )
    const held = await (await rig.start(flow)).begin()
    await rig.fail('hotel', fatal('No room'))
    await held.crash()
    cancels = () => {
      cancels = null
      void held.cancel('as well', 'later')
    }
    await held.goOn('replayed')
    await rig.succeed('flight', 'F1')
    expect(undone).toEqual(['F1'])
    expect(await held.status()).toBe('cancelled')
  })
})

describe('drift', () => {
  it('keeps what a step did that was under way when it was found', async () => {
    const rig = new FunctionRig()
    const before = workflow('drifts', async (ctx) => {
      await Promise.all([ctx.race({ one: ctx.sleep('1 day') }), ctx.step('quick', () => 1)])
    })
    const asleep = await (await rig.start(before)).begin()
    const after = workflow('drifts', async (ctx) => {
      const pay = ctx.step('pay', rig2.gated)
      await ctx.step('quick', () => 1)
      await Promise.all([pay, ctx.step('more', () => 2).then(() => ctx.race({ other: ctx.sleep('1 day') }))])
    })
    const rig2 = new FunctionRig()
    const held = await (await rig2.adopt(after, await asleep.journal())).begin()
    await rig2.succeed('pay', 'paid')
    expect((await held.story()).slice(-3)).toContain('step-succeeded pay')
    expect(await held.status()).toBe('paused')
  })
})

describe('a body that hangs on something of its own', () => {
  it('does not keep a cancellation waiting for ever, and what it did not report is named', async () => {
    const rig = new FunctionRig()
    let hangs = false
    const flow = workflow('hangs', async (ctx) => {
      if (hangs) await new Promise(() => undefined)
      await ctx.step('book', () => 1, { undo: () => undefined })
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    hangs = true
    await held.cancel('no more')
    const again = rig.claim(held.runId)
    const frame = flow.open(rig.host, again)
    const departure = new Promise((resolve) => frame.start({ departed: resolve }))
    await rig.pass(29_999)
    expect(await held.status()).toBe('cancelling')
    await rig.pass(1)
    expect(await departure).toMatchObject({ kind: 'ended', status: 'cancelled' })
    expect((await held.journal()).at(-1)).toMatchObject({ kind: 'cancelled', meta: { notUndone: ['book'] } })
  })
})

describe('continueAsNew', () => {
  it('takes place although the body does not await it', async () => {
    const rig = new FunctionRig()
    const flow = workflow('forgotten.anew', async (ctx, round: number) => {
      if (round < 2) void ctx.continueAsNew(round + 1)
      return round
    })
    const held = await (await rig.start(flow, 1)).begin()
    expect(await held.story()).toEqual(['started', 'continued'])
    await held.continueWith()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 2 })
  })
})

describe('a step that returns something like a promise', () => {
  it('is followed through it', async () => {
    const rig = new FunctionRig({ scopes: createScopes({ callsOfName: Infinity }) })
    const flow = workflow('thenable', async (ctx) =>
      ctx.step('query', () => ({
        // oxlint-disable-next-line unicorn/no-thenable -- as query builders do
        then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
          Promise.resolve()
            .then(() => ctx.step('inner', () => 1))
            .then(resolve, reject)
        },
      })),
    )
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual(['started', 'step-failed query', 'failed'])
  })
})
