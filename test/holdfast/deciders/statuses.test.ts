// Every call that an instance takes, in every status of its run, on every store: none waits without a bound.

import { describe, expect, it } from 'vitest'
import type { Holdfast, Store } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1' } as const
const note = (text: string) => ({ type: 'Note', orderId: '1', text }) as const

async function instance(holdfast: Holdfast): Promise<string> {
  const [run] = (await holdfast.find({ type: 'order' })).runs
  if (run === undefined) throw new Error('There is no instance')
  return run.id
}

/** A process that holds the run: it has claimed it, and does nothing. */
async function held(store: Store, runId: string): Promise<{ readonly release: () => Promise<void> }> {
  const session = 'a-session-of-this-test'
  await store.beat({ session, leaseMs: 60_000, seeksUnknownLeases: false })
  const selectors = [{ type: 'order', version: 1 }]
  const { runs } = await store.claim({ session, selectors, limit: 1, runId })
  const [run] = runs
  if (run === undefined) throw new Error('The run was not claimed')
  return { release: async () => void (await store.release([{ runId, session, token: run.token }])) }
}

describe.each(everyStore)('an instance on $name', ({ make }) => {
  const opened = async () => {
    const { open, store } = await make()
    const order = orderOf()
    return { open: () => open({ workflows: [order] }), holdfast: await open({ workflows: [order] }), order, store }
  }

  /** An instance that another process holds. An input lies in its mailbox: nobody claims a run that only waits. */
  const running = async () => {
    const world = await opened()
    const { holdfast, order, store } = world
    await holdfast.execute(order, create)
    await holdfast.enqueue(order, note('queued'))
    return { ...world, ...(await held(store, await instance(holdfast))) }
  }

  it('that was started and not begun is begun by the first input, without a worker, in every process', async () => {
    const { holdfast, open, order } = await opened()
    const other = await open()
    const run = await holdfast.start(order, create)
    expect(await run.status()).toBe('pending')
    expect(await holdfast.state(order, '1')).toBeUndefined()
    expect(await holdfast.events(order, '1')).toEqual([])
    const answers = await Promise.all([
      holdfast.execute(order, note('a')),
      holdfast.execute(order, note('b')),
      other.execute(order, note('c')),
    ])
    expect(answers.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted', 'accepted'])
    expect([...((await other.state(order, '1'))?.notes ?? [])].sort()).toEqual(['a', 'b', 'c'])
    expect(await run.status()).toBe('waiting')
  })

  it('that was started takes inputs into its mailbox before it is begun, and decides them in order', async () => {
    const { holdfast, order } = await opened()
    await holdfast.start(order, create)
    expect(await holdfast.enqueue(order, note('a'))).toMatchObject({ outcome: 'queued' })
    expect(await holdfast.state(order, '1')).toBeUndefined()
    expect(await holdfast.execute(order, note('b'))).toMatchObject({ state: { notes: ['a', 'b'] } })
  })

  it('whose first input is rejected when it is begun is over, and has no state', async () => {
    const { holdfast, order } = await opened()
    const run = await holdfast.start(order, note('early'))
    expect(await holdfast.execute(order, note('a'))).toEqual({ outcome: 'already-completed' })
    await expect(run.result()).rejects.toMatchObject({ cause: { code: 'INPUT_REJECTED' } })
    expect(await holdfast.state(order, '1')).toBeUndefined()
  })

  it('that is to begin later refuses inputs until then, and says when that is', async () => {
    const { holdfast, order } = await opened()
    await holdfast.start(order, create, { delay: '1h' })
    await expect(holdfast.execute(order, note('a'))).rejects.toMatchObject({
      code: 'WRONG_STATUS',
      details: { type: 'order', id: '1', status: 'pending', dueAt: expect.any(Date) as Date },
    })
    expect(await holdfast.enqueue(order, note('a'))).toMatchObject({ outcome: 'queued' })
  })

  it('that is being moved decides an input when it is free again, and says so where that takes too long', async () => {
    const { holdfast, order, release } = await running()
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'open', notes: [] })
    await expect(holdfast.execute(order, note('a'), { commandId: 'a', timeout: 0 })).rejects.toMatchObject({
      code: 'EXECUTE_TIMEOUT',
      details: { type: 'order', id: '1', status: 'running', commandId: 'a' },
    })
    const executed = holdfast.execute(order, note('b'))
    await until('it is queued', async () => (await holdfast.backlog(order, '1')).inputs === 3)
    await release()
    expect(await executed).toMatchObject({ outcome: 'accepted' })
    expect(await holdfast.execute(order, note('not again'), { commandId: 'a' })).toMatchObject({
      outcome: 'accepted',
      events: [{ text: 'a' }],
    })
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['queued', 'a', 'b'] })
  })

  it('that is paused refuses inputs at once with the reason, keeps those that are enqueued, and goes on', async () => {
    const { holdfast, order } = await opened()
    await holdfast.execute(order, create)
    const runId = await instance(holdfast)
    await holdfast.pause(runId, { note: 'The bank is away' })
    await expect(holdfast.execute(order, note('a'))).rejects.toMatchObject({
      code: 'WRONG_STATUS',
      message: expect.stringContaining('The bank is away') as string,
      details: { type: 'order', id: '1', runId, status: 'paused', reason: 'operator' },
    })
    expect(await holdfast.backlog(order, '1')).toMatchObject({ inputs: 0 })
    expect(await holdfast.enqueue(order, note('b'))).toMatchObject({ outcome: 'queued' })
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'open', notes: [] })
    await holdfast.resume(runId)
    expect(await holdfast.execute(order, note('c'))).toMatchObject({ state: { notes: ['b', 'c'] } })
  })

  it('that is paused while an input waits for it rejects that, and decides it later', async () => {
    const { holdfast, order, release } = await running()
    const executed = holdfast.execute(order, note('a'), { commandId: 'a' })
    await until('it is queued', async () => (await holdfast.backlog(order, '1')).inputs === 2)
    await holdfast.pause(await instance(holdfast))
    await release()
    await expect(executed).rejects.toMatchObject({
      code: 'WRONG_STATUS',
      details: { status: 'paused', commandId: 'a' },
    })
    await holdfast.resume(await instance(holdfast))
    expect(await holdfast.execute(order, note('b'))).toMatchObject({ state: { notes: ['queued', 'a', 'b'] } })
  })

  it('that is being cancelled decides nothing any more, and is over for all when that is done', async () => {
    const { holdfast, order, release } = await running()
    await holdfast.cancel(await instance(holdfast))
    expect((await holdfast.get(await instance(holdfast))).status).toBe('cancelling')
    await expect(holdfast.execute(order, note('a'), { timeout: 0 })).rejects.toMatchObject({
      code: 'EXECUTE_TIMEOUT',
      details: { status: 'cancelling' },
    })
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'open', notes: [] })
    const executed = holdfast.execute(order, note('b'))
    await until('it is queued', async () => (await holdfast.backlog(order, '1')).inputs === 3)
    await release()
    expect(await executed).toEqual({ outcome: 'already-completed' })
    expect(await holdfast.enqueue(order, note('c'))).toEqual({ outcome: 'already-completed' })
    expect((await holdfast.get(await instance(holdfast))).status).toBe('cancelled')
  })

  it.each(['succeeded', 'failed', 'cancelled', 'removed'] as const)('that is %s takes no input', async (status) => {
    const { holdfast, open, order } = await opened()
    const other = await open()
    if (status === 'failed') await holdfast.start(order, note('early'))
    else await holdfast.execute(order, create)
    const runId = await instance(holdfast)
    if (status === 'failed' || status === 'succeeded') await holdfast.execute(order, { type: 'Abandon', orderId: '1' })
    if (status === 'cancelled') await holdfast.cancel(runId)
    if (status === 'removed') await holdfast.remove(runId)
    else expect((await holdfast.get(runId)).status).toBe(status)
    const over = status === 'removed' ? { outcome: 'rejected' } : { outcome: 'already-completed' }
    for (const one of [holdfast, other]) {
      expect(await one.execute(order, note('a'))).toMatchObject(over)
      expect(await one.enqueue(order, note('a'))).toMatchObject(over)
      expect((await one.state(order, '1'))?.notes).toEqual(
        status === 'succeeded' || status === 'cancelled' ? [] : undefined,
      )
    }
  })

  it.each(['paused', 'running'] as const)('that is %s gets the outcome of an effect later', async (status) => {
    const { open, store } = await make()
    const order = orderOf()
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await client.execute(order, { ...create, to: 'ada' })
    const runId = await instance(client)
    await client.enqueue(order, note('queued'))
    const holder = status === 'running' ? await held(store, runId) : null
    if (holder === null) await client.pause(runId)
    await worker.work()
    const ended = { type: 'order/sendMail', status: 'succeeded' } as const
    await until('the effect has ended', async () => (await client.count(ended)).count === 1)
    expect(await client.state(order, '1')).toMatchObject({ isConfirmed: false, notes: [] })
    await (holder === null ? client.resume(runId) : holder.release())
    await until('it is confirmed', async () => (await client.state(order, '1'))?.isConfirmed)
    expect(await client.state(order, '1')).toMatchObject({ notes: ['queued'] })
  })
})
