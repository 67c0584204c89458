// Inputs of deciders inside a transaction of the user's: they take effect if and only if that commits.

import { describe, expect, it } from 'vitest'
import { ownTables } from '../own-tables.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1' } as const
const note = (text: string) => ({ type: 'Note', orderId: '1', text }) as const

describe('holdfast.using(tx).execute', () => {
  it('decides with the transaction, and begins an instance with it', async () => {
    const { db, open } = await ownTables()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    db.exec('begin immediate')
    const using = holdfast.using(db)
    expect(await using.execute(order, note('early'))).toMatchObject({ outcome: 'rejected' })
    expect(await using.execute(order, create)).toMatchObject({ outcome: 'accepted', events: [{ type: 'Created' }] })
    expect(await using.executeDynamic('order', note('a'), { commandId: 'a' })).toMatchObject({
      state: { notes: ['a'] },
    })
    expect(await using.execute(order, note('b'), { commandId: 'a' })).toMatchObject({ events: [{ text: 'a' }] })
    expect(await holdfast.state(order, '1')).toBeUndefined()
    db.exec('commit')
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['a'] })
    expect(await holdfast.execute(order, note('c'))).toMatchObject({ state: { notes: ['a', 'c'] } })
  })

  it('has decided nothing where the transaction is rolled back, also for an instance that is cached', async () => {
    const { db, open } = await ownTables()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create)
    db.exec('begin immediate')
    expect(await holdfast.using(db).execute(order, note('a'))).toMatchObject({ outcome: 'accepted' })
    db.exec('rollback')
    expect(await holdfast.execute(order, note('b'))).toMatchObject({ state: { notes: ['b'] } })
    db.exec('begin immediate')
    expect(await holdfast.using(db).execute(order, { type: 'Abandon', orderId: '1' })).toMatchObject({
      outcome: 'accepted',
    })
    db.exec('commit')
    expect(await holdfast.execute(order, note('c'))).toEqual({ outcome: 'already-completed' })
  })

  it('refuses what it cannot decide, and the transaction stays usable', async () => {
    const { db, open } = await ownTables()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, { ...create, to: 'ada' })
    const [run] = (await holdfast.find({ type: 'order' })).runs
    db.exec('begin immediate')
    const using = holdfast.using(db)
    await expect(using.execute(order, { ...create, orderId: '2', to: 'ada' })).rejects.toMatchObject({
      code: 'RUN_EXISTS',
    })
    await expect(using.execute(order, { type: 'Pay', orderId: '1', amount: -1 })).rejects.toMatchObject({
      code: 'DECIDE_FAILED',
    })
    expect(await using.execute(order, note('a'))).toMatchObject({ outcome: 'accepted' })
    db.exec('commit')
    await holdfast.pause(run?.id ?? '')
    db.exec('begin immediate')
    await expect(holdfast.using(db).execute(order, note('b'))).rejects.toMatchObject({ code: 'WRONG_STATUS' })
    db.exec('rollback')
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['a'] })
  })
})
