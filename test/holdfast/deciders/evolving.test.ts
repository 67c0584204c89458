// A build that has changed its events reads what the build before it wrote, on every store; one that cannot writes nothing.

import { describe, expect, it } from 'vitest'
import { decider, decision } from 'holdfast'
import { everyStore } from '../stores.ts'

type In = { readonly type: 'Pay'; readonly id: string; readonly amount: number }
const pay = (amount: number): In => ({ type: 'Pay', id: '1', amount })

const before = decider('till', {
  initial: () => 0,
  evolve: (cents, event: { type: 'Charged'; cents: number } | { type: 'Noted' }) =>
    event.type === 'Charged' ? cents + event.cents : cents,
  decide: (_cents, { amount }: In) => decision({ type: 'Charged', cents: amount * 100 }, { type: 'Noted' }),
  id: 'id',
  snapshotEvery: 4,
})

type Paid = { type: 'Paid'; amount: number }
const base = {
  initial: () => ({ total: 0 }),
  evolve: (state: { total: number }, event: Paid) => ({ total: state.total + event.amount }),
  decide: (_state: { total: number }, { amount }: In) => decision({ type: 'Paid', amount }),
  id: 'id',
  retired: ['Noted'],
  renamed: { Charged: 'Paid' },
  stateVersion: 2,
} as const
const after = decider('till', {
  ...base,
  upcast: { Paid: { 1: ({ cents }: { cents: number }) => ({ type: 'Paid', amount: cents / 100 }) } },
  upcastState: { 1: (cents: number) => ({ total: cents / 100 }) },
})
const broken = decider('till', {
  ...base,
  upcast: {
    Paid: {
      1: (): Paid => {
        throw new RangeError('no rate')
      },
    },
  },
})

describe.each(everyStore)('a changed decider on $name', ({ make }) => {
  it('IF-V1 IF-V2 goes on with what the build before it wrote, and shows it in the present form', async () => {
    const { open } = await make()
    const old = await open({ workflows: [before] })
    for (const amount of [1, 2, 3]) await old.execute(before, pay(amount), { commandId: `c-${amount}` })
    await old.close()
    const holdfast = await open({ workflows: [after] })
    expect(await holdfast.state(after, '1')).toEqual({ total: 6 })
    expect(await holdfast.execute(after, pay(4))).toMatchObject({ outcome: 'accepted', state: { total: 10 } })
    expect(await holdfast.events(after, '1')).toEqual([1, 2, 3, 4].map((amount) => ({ type: 'Paid', amount })))
    const repeated = await holdfast.execute(after, pay(9), { commandId: 'c-2' })
    expect(repeated).toMatchObject({ outcome: 'accepted', events: [{ type: 'Paid', amount: 2 }] })
    const history = await holdfast.history(after, '1', { limit: 2 })
    expect(history).toMatchObject([{ event: { amount: 1 }, cause: { input: 'Pay' } }, { event: { amount: 2 } }])
    // The journal itself never changes.
    const journal = await holdfast.journal(await holdfast.instance(after, '1'))
    expect(journal.find(({ kind }) => kind === 'event')).toMatchObject({ name: 'Charged', data: { cents: 100 } })
  })

  it('IF-V2 IF-E9 writes nothing where an upcaster throws, and names the event', async () => {
    const { open } = await make()
    const old = await open({ workflows: [before] })
    await old.execute(before, pay(1))
    const run = await old.instance(before, '1')
    const { length } = await old.journal(run)
    await old.close()
    const holdfast = await open({ workflows: [broken] })
    await expect(holdfast.execute(broken, pay(2))).rejects.toMatchObject({
      code: 'EVENT_UNREADABLE',
      message: expect.stringContaining('the upcaster of "Paid" from version 1 threw: no rate') as string,
      details: { type: 'till', id: '1', seq: 3, event: 'Charged' },
    })
    await expect(holdfast.events(broken, '1')).rejects.toMatchObject({ code: 'EVENT_UNREADABLE' })
    expect(await holdfast.journal(run)).toHaveLength(length)
  })
})
