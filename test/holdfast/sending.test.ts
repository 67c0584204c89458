// Signals from outside: whatever the run is doing, what was sent is delivered once or lies there once, and the answer says
// which.

import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { HoldfastError, topic, workflow } from 'holdfast'
import { messagesOf, takeUp } from './by-hand.ts'
import { gate, settled } from './gate.ts'
import { keepLines, memoryStore, open } from './open.ts'
import { changed } from './virtual-world.ts'

const order = workflow('order', (_ctx, id: string) => id)
const nobody = '01900000-0000-7000-8000-000000000000'

async function world() {
  const store = memoryStore()
  const holdfast = await open({ store, workflows: [order] })
  return { store, holdfast, run: await holdfast.start(order, 'a', { key: 'a' }) }
}

describe('a signal', () => {
  test('sent before the run has begun is queued, and lies in its mailbox in the order of sending (WC-W1, WC-E4)', async () => {
    const { store, holdfast, run } = await world()
    expect(await holdfast.signal(run, 'paid', { amount: 3 }, { id: 's-1' })).toEqual({
      outcome: 'queued',
      runId: run.id,
      signalId: 's-1',
    })
    expect(await run.signal('shipped')).toMatchObject({ outcome: 'queued', runId: run.id })
    expect(await messagesOf(store, run)).toMatchObject([
      { id: 's-1', kind: 'signal', name: 'paid', data: '{"amount":3}', policy: null },
      { name: 'shipped' },
    ])
  })

  test('wakes a run that waits, and what comes before it has gone on is in its mailbox, too (WC-E4)', async () => {
    const { store, holdfast, run } = await world()
    await (await takeUp(store, 'order')).park()
    expect(await holdfast.signal(run.id, 'paid')).toEqual({ outcome: 'delivered', runId: run.id })
    expect(await store.get([run.id])).toMatchObject([{ status: 'waiting', readiness: 'ready' }])
    await holdfast.signal(run.id, 'shipped')
    expect((await messagesOf(store, run)).map(({ name }) => name)).toEqual(['paid', 'shipped'])
  })

  test('to a run that is over says how it ended, and stores nothing (WC-W1)', async () => {
    const { store, holdfast, run } = await world()
    await run.cancel()
    const terminated = { outcome: 'target-terminated', runId: run.id, status: 'cancelled' }
    expect(await holdfast.signal(run, 'paid')).toEqual(terminated)
    expect(await messagesOf(store, run)).toEqual([])
  })

  test('to nobody says so, also where no id could be (WC-W1)', async () => {
    const { holdfast } = await world()
    expect(await holdfast.signal(nobody, 'paid')).toEqual({ outcome: 'target-not-found' })
    expect(await holdfast.signal('order-42', 'paid')).toEqual({ outcome: 'target-not-found' })
  })

  test('to the value of a key, where the workflow is not registered, says once to name the field or to register it', async () => {
    const store = memoryStore()
    const unique = workflow('unique', { unique: { key: 'orderId' } }, (_ctx, input: { orderId: string }) => input)
    const starter = await open({ store, workflows: [unique] })
    const { id } = await starter.start(unique, { orderId: '42' })
    const logger = keepLines()
    const sender = await open({ store, logger })
    const to = { type: 'unique', key: '42' }
    for (const _ of [1, 2]) expect(await sender.signal(to, 'paid')).toEqual({ outcome: 'target-not-found' })
    expect(await sender.signal({ type: 'unique', key: 'orderId::43' }, 'paid')).toEqual({ outcome: 'target-not-found' })
    expect(logger.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('"orderId::42"') as string }])
    expect(logger.lines[0]?.message).toContain('register the workflow here')
    expect(await sender.signal({ type: 'unique', key: 'orderId::42' }, 'paid')).toMatchObject({ runId: id })
    expect(await starter.signal(to, 'paid')).toMatchObject({ runId: id })
  })

  test('sent twice under one id arrives once, and is answered as the first time', async () => {
    const { store, holdfast, run } = await world()
    const first = await holdfast.signal(run, 'paid', 1, { id: 'payment-1' })
    expect(await holdfast.signal(run, 'paid', 2, { id: 'payment-1' })).toEqual({ ...first, repeated: true })
    expect(await messagesOf(store, run)).toMatchObject([{ data: '1' }])
    await run.cancel()
    expect(await holdfast.signal(run, 'paid', 3, { id: 'payment-1' })).toEqual({ ...first, repeated: true })
  })

  test('carries a payload that is too large for the mailbox where large ones go', async () => {
    const put: string[] = []
    const offload = {
      thresholdBytes: 10,
      put: (text: string) => Promise.resolve(`object-${put.push(text)}`),
      get: (reference: string) => Promise.resolve(put[Number(reference.slice('object-'.length)) - 1] ?? ''),
    }
    const store = memoryStore()
    const holdfast = await open({ store, workflows: [order], offload })
    const run = await holdfast.start(order, 'a')
    await holdfast.signal(run, 'paid', 'x'.repeat(100))
    expect(await messagesOf(store, run)).toMatchObject([{ data: 'offload:object-1' }])
  })

  it.each([
    ['no name', '', {}],
    ['a name of tokens', 'token:3', {}],
    ['the name of a run', nobody, {}],
    ['an id of the engine', 'paid', { id: 'ended:x' }],
    ['an id of what was passed on', 'paid', { id: `x@topic/${nobody}.1` }],
    ['an id of nothing', 'paid', { id: '' }],
  ])('with %s is refused', async (_, name, options) => {
    const { holdfast, run } = await world()
    await expect(holdfast.signal(run, name, 1, options)).rejects.toMatchObject({ code: 'INVALID_NAME' })
  })

  test('to what is no run at all is a mistake of the caller', async () => {
    const { holdfast } = await world()
    for (const target of [null, 3, { type: 'order' }, { key: 'a' }]) {
      await expect(holdfast.signal(target as never, 'paid')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    }
  })
})

describe('a signal in the name of a topic', () => {
  const paid = topic('paid', { schema: z.object({ amount: z.number() }), onUnread: 'dead-letter' })

  test('is checked by the schema of the topic before anything is sent', async () => {
    const { store, holdfast, run } = await world()
    await expect(holdfast.signal(run, paid, { amount: 'much' } as never)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
    expect(await messagesOf(store, run)).toEqual([])
  })

  test('takes what the topic says of those who end (WC-W3)', async () => {
    const { store, holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 })
    expect(await messagesOf(store, run)).toMatchObject([
      { kind: 'topic-signal', name: 'paid', policy: { onUnread: 'dead-letter' } },
    ])
  })
})

describe('a signal by key', () => {
  const to = { type: 'order', key: 'a' }

  test('goes to the live run that has it', async () => {
    const { holdfast, run } = await world()
    await run.cancel()
    const second = await holdfast.start(order, 'b', { key: 'a' })
    expect(await holdfast.signal(to, 'paid')).toMatchObject({ outcome: 'queued', runId: second.id })
  })

  test('of runs that are all over names the last one, and of none that there is none', async () => {
    const { holdfast, run } = await world()
    await run.cancel()
    const last = await holdfast.start(order, 'b', { key: 'a' })
    await last.cancel()
    expect(await holdfast.signal(to, 'paid')).toEqual({
      outcome: 'target-terminated',
      runId: last.id,
      status: 'cancelled',
    })
    expect(await holdfast.signal({ type: 'order', key: 'b' }, 'paid')).toEqual({ outcome: 'target-not-found' })
  })

  test('finds a run of a workflow that is unique by something by the value alone', async () => {
    const account = workflow('account', { unique: { key: 'owner' } }, (_ctx, { owner }: { owner: string }) => owner)
    const holdfast = await open({ workflows: [account] })
    const run = await holdfast.start(account, { owner: 'ada' })
    expect(await holdfast.signal({ type: 'account', key: 'ada' }, 'x')).toMatchObject({ runId: run.id })
    expect(await holdfast.signal({ type: 'account', key: 'owner::ada' }, 'x')).toMatchObject({ runId: run.id })
  })

  test('is looked for once more if that run ended while the signal was on its way', async () => {
    const store = memoryStore()
    const aside = await open({ store, workflows: [order] })
    const first = await aside.start(order, 'a', { key: 'a' })
    let second = ''
    const holdfast = await open({
      workflows: [order],
      store: changed(store, {
        deliver: async (messages) => {
          if (second === '') {
            await first.cancel()
            second = (await aside.start(order, 'b', { key: 'a' })).id
          }
          return store.deliver(messages)
        },
      }),
    })
    expect(await holdfast.signal(to, 'paid')).toMatchObject({ outcome: 'queued', runId: second })
    expect(await messagesOf(store, { id: second })).toMatchObject([{ name: 'paid' }])
  })
})

describe('signals', () => {
  test('that come together go to the store together, in their order (WC-E1)', async () => {
    const store = memoryStore()
    const flushes: string[][] = []
    const holdfast = await open({
      workflows: [order],
      store: changed(store, {
        deliver: (messages) => {
          flushes.push(messages.map(({ id }) => id))
          return store.deliver(messages)
        },
      }),
    })
    const [one, other] = [await holdfast.start(order, 'a'), await holdfast.start(order, 'b')]
    const answers = await holdfast.signals([
      { to: one, name: 'n', payload: 1, options: { id: '1' } },
      { to: other, name: 'n', payload: 2, options: { id: '2' } },
      { to: nobody, name: 'n', options: { id: '3' } },
      { to: one, name: '', options: { id: '4' } },
      { to: one, name: 'n', payload: 5, options: { id: '5' } },
    ])
    expect(flushes).toEqual([['1', '2', '3', '5']])
    expect(answers).toMatchObject([
      { ok: true, value: { outcome: 'queued', runId: one.id, signalId: '1' } },
      { ok: true, value: { outcome: 'queued', runId: other.id, signalId: '2' } },
      { ok: true, value: { outcome: 'target-not-found' } },
      { ok: false, error: { code: 'INVALID_NAME' } },
      { ok: true, value: { outcome: 'queued', runId: one.id, signalId: '5' } },
    ])
    expect((await messagesOf(store, one)).map(({ data }) => data)).toEqual(['1', '5'])
  })

  test('whose answer was lost are sent again, and arrive once', async () => {
    const store = memoryStore()
    let losses = 1
    const holdfast = await open({
      workflows: [order],
      logger: keepLines(),
      store: changed(store, {
        deliver: async (messages) => {
          const answers = await store.deliver(messages)
          losses -= 1
          if (losses >= 0) throw new HoldfastError('STORE_UNAVAILABLE', 'The answer was lost.')
          return answers
        },
      }),
    })
    const run = await holdfast.start(order, 'a')
    await Promise.all([1, 2, 3].map((n) => holdfast.signal(run, 'n', n)))
    expect((await messagesOf(store, run)).map(({ data }) => data)).toEqual(['1', '2', '3'])
  })

  test('that the store cannot take harm no other', async () => {
    const store = memoryStore()
    const holdfast = await open({
      workflows: [order],
      store: changed(store, {
        deliver: async (messages) => {
          if (messages.some(({ data }) => data === '2'))
            throw new HoldfastError('ENTRY_REJECTED', 'This one is too large.')
          return store.deliver(messages)
        },
      }),
    })
    const run = await holdfast.start(order, 'a')
    const answers = await holdfast.signals([1, 2, 3].map((payload) => ({ to: run, name: 'n', payload })))
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true])
    expect((await messagesOf(store, run)).map(({ data }) => data)).toEqual(['1', '3'])
  })

  test('that were accepted are sent before a Holdfast is closed, and none after', async () => {
    const store = memoryStore()
    const line = gate()
    const holdfast = await open({
      workflows: [order],
      store: changed(store, { deliver: (messages) => line.passed.then(() => store.deliver(messages)) }),
    })
    const run = await holdfast.start(order, 'a')
    const sent = holdfast.signal(run, 'paid')
    await settled()
    const closed = holdfast.close()
    line.open()
    await Promise.all([sent, closed])
    expect(await messagesOf(store, run)).toHaveLength(1)
    await expect(holdfast.signal(run, 'paid')).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
