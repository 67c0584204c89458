// Inputs that go through the mailbox, from end to end, on every store.

import { describe, expect, it } from 'vitest'
import { type Holdfast } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1' } as const
const note = (text: string) => ({ type: 'Note', orderId: '1', text }) as const

async function notes(holdfast: Holdfast, order: ReturnType<typeof orderOf>): Promise<readonly string[]> {
  return (await holdfast.state(order, '1'))?.notes ?? []
}

describe.each(everyStore)('enqueue on $name', ({ make }) => {
  it('IF-N2 IF-C1 keeps inputs in order until a worker decides them, in one commit where they fit', async () => {
    const { open } = await make()
    const order = orderOf()
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    expect(await client.enqueue(order, create)).toMatchObject({ outcome: 'accepted' })
    const texts = Array.from({ length: 120 }, (_, at) => `n${at}`)
    const answers = await Promise.all(texts.map((text) => client.enqueue(order, note(text))))
    expect(answers[0]).toMatchObject({ outcome: 'queued', commandId: expect.any(String) as string })
    expect(await client.backlog(order, '1')).toMatchObject({ inputs: 120, since: expect.any(Date) as Date })
    await worker.work()
    await until('all are decided', async () => (await notes(client, order)).length === 120)
    expect(await notes(client, order)).toEqual(texts)
    expect(await client.backlog(order, '1')).toEqual({ inputs: 0, isCapped: false, since: null })
  })

  it('IF-N2 lets execute overtake what is enqueued, and sees its own events when it returns', async () => {
    const { open } = await make()
    const order = orderOf()
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await client.execute(order, create)
    for (const text of ['a', 'b']) await client.enqueue(order, note(text))
    expect(await client.execute(order, note('first'))).toMatchObject({ state: { notes: ['first'] } })
    await worker.work()
    await until('all are decided', async () => (await notes(client, order)).length === 3)
    expect(await notes(client, order)).toEqual(['first', 'a', 'b'])
  })

  it('IF-U2 decides an input once that is enqueued and executed under one id', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create)
    await holdfast.enqueue(order, note('a'), { commandId: 'a' })
    await holdfast.enqueue(order, note('a'), { commandId: 'a' })
    expect(await holdfast.execute(order, note('a'), { commandId: 'a' })).toMatchObject({ outcome: 'accepted' })
    await holdfast.enqueue(order, note('b'), { commandId: 'b' })
    await holdfast.work()
    await until('all are decided', async () => (await holdfast.backlog(order, '1')).inputs === 0)
    expect(await notes(holdfast, order)).toEqual(['a', 'b'])
  })

  it('fails an input that cannot be decided alone, and those behind it are decided', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create)
    const all = [note('a'), { type: 'Pay', orderId: '1', amount: -1 } as const, create, note('b')]
    for (const input of all) await holdfast.enqueue(order, input)
    const [run] = (await holdfast.find({ type: 'order' })).runs
    await holdfast.signal(run?.id ?? '', 'no-input')
    await holdfast.work()
    await until('all are decided', async () => (await notes(holdfast, order)).length === 2)
    const outcomes = await until('the stray signal is taken, too', async () => {
      const inputs = (await holdfast.journal(run?.id ?? '')).filter(({ kind }) => kind === 'input')
      return inputs.length === 6 ? inputs.map(({ meta }) => (meta as { outcome: string }).outcome) : null
    })
    expect(outcomes).toEqual(['accepted', 'accepted', 'failed', 'rejected', 'accepted', 'failed'])
  })

  it('IF-E7 drops inputs that were enqueued behind the end, whose entry stays the last', async () => {
    const { open } = await make()
    const order = orderOf()
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await client.execute(order, create)
    const abandon = { type: 'Abandon', orderId: '1' } as const
    for (const input of [abandon, note('late'), abandon]) await client.enqueue(order, input)
    await client.enqueue(order, note('again'), { commandId: 'again' })
    const instance = await client.instance(order, '1')
    await worker.work()
    expect(await instance.result()).toMatchObject({ status: 'expired', notes: [] })
    expect((await client.journal(instance.id)).map(({ kind }) => kind).slice(-3)).toEqual([
      'input',
      'event',
      'succeeded',
    ])
    expect((await client.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    expect(await client.execute(order, note('again'), { commandId: 'again' })).toEqual({ outcome: 'already-completed' })
  })

  it('leaves nothing of a first input that is rejected', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    expect(await holdfast.enqueue(order, note('early'))).toMatchObject({ outcome: 'rejected' })
    expect((await holdfast.find({})).runs).toEqual([])
    expect(await holdfast.submit({ kind: 'enqueue', decider: 'order', input: create })).toMatchObject({
      outcome: 'accepted',
    })
  })

  it('refuses more inputs than the limit, and takes more when some were decided', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order], limits: { mailbox: 2 } })
    await holdfast.execute(order, create)
    await holdfast.enqueue(order, note('a'))
    await holdfast.enqueue(order, note('b'))
    await expect(holdfast.enqueue(order, note('c'))).rejects.toMatchObject({ code: 'MAILBOX_FULL' })
    await holdfast.work()
    await until('they are decided', async () => (await notes(holdfast, order)).length === 2)
    expect(await holdfast.enqueue(order, note('d'))).toMatchObject({ outcome: 'queued' })
  })

  it('waits while the instance is paused', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    const [run] = (await holdfast.find({ type: 'order' })).runs
    await holdfast.pause(run?.id ?? '')
    await holdfast.enqueue(order, note('a'))
    expect(await holdfast.backlog(order, '1')).toMatchObject({ inputs: 1 })
    expect(await notes(holdfast, order)).toEqual([])
    await holdfast.resume(run?.id ?? '')
    await until('it is decided', async () => (await notes(holdfast, order)).length === 1)
  })
})
