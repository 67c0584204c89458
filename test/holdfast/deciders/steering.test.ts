// What operators ask of instances and their effects, on every store: nothing that was done is forgotten, and nothing more begins.

import { describe, expect, it } from 'vitest'
import type { Holdfast } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1', to: 'ada' } as const
const note = (text: string) => ({ type: 'Note', orderId: '1', text }) as const

async function idOf(holdfast: Holdfast, type: string): Promise<string> {
  return until(`there is a run of ${type}`, async () => (await holdfast.find({ type })).runs[0]?.id)
}

describe.each(everyStore)('an operator on $name', ({ make }) => {
  it('cancels an instance: its timer does not fire, and no input is decided any more', async () => {
    const { open } = await make()
    // Long enough to be cancelled before it is due, on a slow disk, too.
    const order = orderOf({ patienceMs: 800 })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    await holdfast.cancel(await idOf(holdfast, 'order'), { reason: 'changed my mind' })
    await holdfast.execute(order, { type: 'Create', orderId: '2' })
    await until('a later timer has fired', async () => (await holdfast.state(order, '2'))?.status === 'expired')
    expect(await holdfast.events(order, '1')).toEqual([{ type: 'Created' }])
    expect(await holdfast.execute(order, note('x'))).toEqual({ outcome: 'already-completed' })
  })

  it('cancels an instance: the effect that is performed is asked to stop, and its result is not decided', async () => {
    const { open } = await make()
    const seen: string[] = []
    const order = orderOf({
      mail: (_to, { abortSignal }) =>
        new Promise((resolve) => {
          seen.push('begun')
          abortSignal.addEventListener('abort', () => {
            seen.push('asked to stop')
            resolve()
          })
        }),
    })
    const holdfast = await open({ workflows: [order] })
    const worker = await holdfast.work()
    await holdfast.execute(order, create)
    await until('it is performed', () => seen.length === 1)
    await holdfast.cancel(await idOf(holdfast, 'order'))
    worker.beat()
    const effect = await idOf(holdfast, 'order/sendMail')
    await until('it has ended', async () => (await holdfast.get(effect)).status === 'cancelled')
    expect(seen).toEqual(['begun', 'asked to stop'])
    expect(await holdfast.events(order, '1')).toEqual([{ type: 'Created' }])
  })

  it('cancels an effect alone: the decider learns of that as of one that gave up', async () => {
    const { open } = await make()
    const order = orderOf()
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await client.execute(order, create)
    await client.cancel(await idOf(client, 'order/sendMail'), { reason: 'not this one' })
    await worker.work()
    await until('it is decided', async () => (await client.events(order, '1')).length === 2)
    expect(await client.events(order, '1')).toEqual([{ type: 'Created' }, { type: 'Unconfirmed' }])
  })

  it('pauses an effect between two attempts, and resumes it where it was', async () => {
    const { open } = await make()
    const attempts: number[] = []
    const order = orderOf({
      pauseMs: 1_500,
      mail: (_to, { attempt }) => {
        attempts.push(attempt)
        if (attempt === 1) throw new Error('Not yet')
      },
    })
    const holdfast = await open({ workflows: [order] })
    const worker = await holdfast.work()
    await holdfast.execute(order, create)
    const effect = await idOf(holdfast, 'order/sendMail')
    await until('the first attempt is recorded', async () => (await holdfast.journal(effect)).length === 2)
    await holdfast.pause(effect, { note: 'a moment' })
    worker.beat()
    await until('it is paused', async () => (await holdfast.get(effect)).status === 'paused')
    expect(attempts).toEqual([1])
    await holdfast.resume(effect)
    await until('it is confirmed', async () => (await holdfast.state(order, '1'))?.isConfirmed)
    expect(attempts).toEqual([1, 2])
  })

  it('stops a worker: an effect that does not end in time is performed again elsewhere, under its key', async () => {
    const { open } = await make()
    const keys: string[] = []
    const world = { hangs: true }
    const order = orderOf({
      mail: async (_to, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        if (world.hangs) await new Promise(() => undefined)
      },
    })
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    const worker = await one.work({ shutdownTimeout: '50 ms' })
    await one.execute(order, create)
    await until('it is performed', () => keys.length === 1)
    world.hangs = false
    await worker.stop()
    await other.work()
    await until('it is confirmed', async () => (await other.state(order, '1'))?.isConfirmed)
    expect(new Set(keys).size).toBe(1)
    expect(keys).toHaveLength(2)
  })
})
