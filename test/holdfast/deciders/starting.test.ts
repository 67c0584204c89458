// Deciders and functions together, on every store: functions start, await and call instances.

import { describe, expect, it } from 'vitest'
import { decider, decision, workflow } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf, type OrderCall } from './order.ts'

describe.each(everyStore)('a function on $name', ({ make }) => {
  it('awaits the end of an instance that it has started, and gets its last state', async () => {
    const { open } = await make()
    const order = orderOf()
    const parent = workflow('parent', (ctx, orderId: string) => ctx.child(order, { type: 'Create', orderId }))
    const holdfast = await open({ workflows: [order, parent] })
    await holdfast.work()
    const run = await holdfast.start(parent, '1')
    await until('it has begun', async () => (await holdfast.state(order, '1'))?.status === 'open')
    await holdfast.execute(order, { type: 'Pay', orderId: '1', amount: 5 })
    expect(await run.result()).toMatchObject({ status: 'shipped' })
  })

  it('fails where the input of its instance is rejected, and where there is one of that id', async () => {
    const { open } = await make()
    const order = orderOf()
    const parent = workflow('parent', async (ctx, input: { type: 'Note' | 'Create'; orderId: string }) =>
      ctx.child(order, { text: 'x', ...input }),
    )
    const holdfast = await open({ workflows: [order, parent] })
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    const rejected = await holdfast.start(parent, { type: 'Note', orderId: '2' })
    await expect(rejected.result()).rejects.toMatchObject({ cause: { code: 'CHILD_FAILED' } })
    const taken = await holdfast.start(parent, { type: 'Create', orderId: '1' })
    await expect(taken.result()).rejects.toMatchObject({ cause: { code: 'CHILD_REFUSED' } })
  })

  it('has an input decided exactly once, however often its step is performed', async () => {
    const { open } = await make()
    const order = orderOf()
    const teller = workflow('teller', async (ctx, orderId: string) => {
      const first = await ctx.execute(order, { type: 'Note', orderId, text: 'a' })
      const second = await ctx.execute(order, { type: 'Note', orderId, text: 'b' })
      return [first.outcome, second.outcome === 'accepted' ? second.state.notes : null]
    })
    const holdfast = await open({ workflows: [order, teller] })
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    const run = await holdfast.start(teller, '1')
    expect(await run.result()).toEqual(['accepted', ['a', 'b']])
    // What a process would do that has died before it could record the first step.
    const commandId = `${run.id}:1:execute%3Aorder`
    expect(await holdfast.execute(order, { type: 'Note', orderId: '1', text: 'c' }, { commandId })).toMatchObject({
      events: [{ type: 'Noted', text: 'a' }],
    })
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['a', 'b'] })
  })

  it('fails at once at an input that is wrong, and waits for an instance that is paused', async () => {
    const { open } = await make()
    const order = orderOf()
    const teller = workflow('teller', async (ctx, input: { type: 'Note' | 'Late'; orderId: string }) => {
      const answer = await ctx.execute(order, { text: 'x', ...input } as OrderCall)
      return answer.outcome
    })
    const holdfast = await open({ workflows: [order, teller] })
    await holdfast.work()
    const wrong = await holdfast.start(teller, { type: 'Late', orderId: '1' })
    await expect(wrong.result()).rejects.toMatchObject({ cause: { code: 'INVALID_INPUT' } })
    expect((await holdfast.journal(wrong)).some(({ kind }) => kind === 'attempt-failed')).toBe(false)
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    const [paused] = (await holdfast.find({ type: 'order' })).runs
    await holdfast.pause(paused?.id ?? '')
    const waiting = await holdfast.start(teller, { type: 'Note', orderId: '1' })
    const failed = async () => (await holdfast.journal(waiting)).some(({ kind }) => kind === 'attempt-failed')
    await until('it was tried', failed)
    await holdfast.resume(paused?.id ?? '')
    expect(await waiting.result()).toBe('accepted')
  })

  it('is started as a run like any other: by its input, which names it', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    const run = await holdfast.start(order, { type: 'Create', orderId: '1' })
    const again = await holdfast.start(order, { type: 'Create', orderId: '1' })
    expect([again.id, again.created]).toEqual([run.id, false])
    await until('it has begun', async () => (await holdfast.state(order, '1'))?.status === 'open')
    await holdfast.execute(order, { type: 'Abandon', orderId: '1' })
    expect(await run.result()).toMatchObject({ status: 'expired' })
    const given = holdfast.start(order, { type: 'Create', orderId: '2' }, { key: 'mine' })
    await expect(given).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.start('order/ship', {})).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe.each(everyStore)('an instance on $name', ({ make }) => {
  it('is awaited by a client and by a function that has found it, and gives its last state', async () => {
    const { open } = await make()
    const order = orderOf()
    const watch = workflow('watch', async (ctx, runId: string) => {
      const { output } = (await ctx.waitFor(runId)) as { readonly output?: unknown }
      return output
    })
    const holdfast = await open({ workflows: [order, watch] })
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    const instance = await holdfast.instance(order, '1')
    const watching = await holdfast.start(watch, instance.id)
    const result = instance.result()
    await holdfast.execute(order, { type: 'Abandon', orderId: '1' })
    expect((await result).status).toBe('expired')
    expect(await watching.result()).toMatchObject({ status: 'expired' })
    expect(await (await holdfast.instance('order', '1')).status()).toBe('succeeded')
    await expect(holdfast.instance(order, '2')).rejects.toMatchObject({
      code: 'RUN_NOT_FOUND',
      details: { type: 'order', id: '2' },
    })
  })

  it('IF-S4 is folded from a snapshot, and from all events where code has changed', async () => {
    const { open } = await make()
    const counting = (stateVersion: number) =>
      decider('counting', {
        initial: () => ({ count: 0 }),
        evolve: ({ count }, _event: { type: 'Counted' }) => ({ count: count + 1 }),
        decide: (_state, _input: { type: 'Count'; id: string }) => decision({ type: 'Counted' }),
        id: 'id',
        snapshotEvery: 10,
        stateVersion,
      })
    const [first, changed] = [counting(1), counting(2)]
    const one = await open({ workflows: [first] })
    for (let at = 0; at < 12; at += 1) await one.execute(first, { type: 'Count', id: '1' })
    const other = await open({ workflows: [first] })
    expect(await other.execute(first, { type: 'Count', id: '1' })).toMatchObject({ state: { count: 13 } })
    const [run] = (await other.find({ type: 'counting' })).runs
    expect((await other.journal(run?.id ?? '')).some(({ kind }) => kind === 'snapshot')).toBe(true)
    const newer = await open({ workflows: [changed] })
    await newer.work()
    await newer.enqueue(changed, { type: 'Count', id: '1' })
    await until('it is decided', async () => (await newer.state(changed, '1'))?.count === 14)
    expect(await newer.execute(changed, { type: 'Count', id: '1' })).toMatchObject({ state: { count: 15 } })
    expect(await newer.events(changed, '1')).toHaveLength(15)
  })

  it('IF-S2 IF-S5 shows its events with times and causes, from any place on', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    await holdfast.execute(order, { type: 'Note', orderId: '1', text: 'a' }, { commandId: 'c1' })
    await holdfast.execute(order, { type: 'Note', orderId: '1', text: 'b' })
    const all = await holdfast.history(order, '1')
    expect(all).toMatchObject([
      { seq: 3, event: { type: 'Created' }, cause: { input: 'Create', from: { kind: 'start' }, commandId: null } },
      { seq: 6, event: { text: 'a' }, cause: { input: 'Note', from: { kind: 'call' }, commandId: 'c1' } },
      { seq: 8, event: { text: 'b' }, cause: { input: 'Note', commandId: null } },
    ])
    expect(all.every(({ at }) => at instanceof Date)).toBe(true)
    expect(await holdfast.history(order, '1', { after: 3, limit: 1 })).toEqual(all.slice(1, 2))
    expect(await holdfast.events('order', '1', { after: 6 })).toEqual([{ type: 'Noted', text: 'b' }])
    expect([await holdfast.events(order, 'none'), await holdfast.state('order', 'none')]).toEqual([[], undefined])
    expect(await holdfast.backlog(order, 'none')).toEqual({ inputs: 0, isCapped: false, since: null })
    await expect(holdfast.state('nothing', '1')).rejects.toMatchObject({ code: 'WORKFLOW_UNKNOWN' })
  })
})
