// Inputs of deciders from end to end, on every store: what a caller learns, and what is in the journal then.

import { describe, expect, it } from 'vitest'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

describe.each(everyStore)('execute on $name', ({ make }) => {
  it('IF-E1 IF-E3 commits what follows before it returns, without a worker, and every process reads it', async () => {
    const { open } = await make()
    const order = orderOf()
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    const created = await one.execute(order, { type: 'Create', orderId: '1' })
    expect(created).toMatchObject({ outcome: 'accepted', events: [{ type: 'Created' }], state: { status: 'open' } })
    expect(await other.events(order, '1')).toEqual([{ type: 'Created' }])
    expect(await other.executeDynamic('order', { type: 'Note', orderId: '1', text: 'hello' })).toMatchObject({
      outcome: 'accepted',
      state: { notes: ['hello'] },
    })
    expect(await one.state(order, '1')).toEqual({ status: 'open', isConfirmed: false, notes: ['hello'] })
  })

  it('performs effects, and decides what they return', async () => {
    const { open } = await make()
    const mails: string[] = []
    const order = orderOf({ mail: (to, { idempotencyKey }) => void mails.push(`${to} ${idempotencyKey}`) })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: '7', to: 'ada' })
    await until('it is confirmed', async () => (await holdfast.state(order, '7'))?.isConfirmed)
    expect(mails).toEqual(['ada order:7:5'])
    await holdfast.execute(order, { type: 'Pay', orderId: '7', amount: 5 })
    await until('it is shipped', async () => (await holdfast.state(order, '7'))?.status === 'shipped')
    expect(await holdfast.execute(order, { type: 'Note', orderId: '7', text: 'late' })).toEqual({
      outcome: 'already-completed',
    })
  })
})
