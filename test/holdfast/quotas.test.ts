// How much may lie unread: a run that nobody reads for, a topic that keeps all and one on which many runs wait. Each refusal
// says the number and the option, harms nobody else, and is over as soon as there is room.

import { describe, expect, it } from 'vitest'
import { topic, workflow, type Holdfast, type HoldfastError, type RunHandle } from 'holdfast'
import { until } from './gate.ts'
import { everyStore } from './stores.ts'

const reader = workflow('reader', async (ctx, count: number) => {
  const read: unknown[] = []
  for (let n = 0; n < count; n += 1) read.push(await ctx.receive('go'))
  return read
})

const prices = topic<number>('prices', { retain: '1h' })
const jobs = topic<number>('jobs', { delivery: 'one' })
const go = topic<string>('go', { onUnread: 'dead-letter' })

const subscriber = workflow('subscriber', { retry: 'none' }, async (ctx) => {
  try {
    return await ctx.receive(prices)
  } catch (error) {
    const { code, message, details } = error as HoldfastError
    ctx.expose('refused', { code, message, details })
    const { tag } = await ctx.race({ price: ctx.receive('by hand'), later: ctx.sleep('1 day') })
    return tag === 'price' ? ctx.receive(prices) : 'late'
  }
})

async function refusal(call: Promise<unknown>): Promise<HoldfastError> {
  return (await call.catch((reason: unknown) => reason)) as HoldfastError
}

async function waitsFor(holdfast: Holdfast, run: RunHandle<unknown>): Promise<void> {
  await until(async () => (await holdfast.get(run)).status === 'waiting')
}

describe.each(everyStore)('on the $name store', ({ make }) => {
  it('a run that leaves its signals unread takes no more than limits.mailbox, and goes on once it has read', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [reader], limits: { mailbox: 3 } })
    const run = await holdfast.start(reader, 4)
    const other = await holdfast.start(reader, 1)
    const sent = [1, 2, 3, 4, 5].map((payload) => ({ to: run, name: 'go', payload, options: { id: `s${payload}` } }))
    const answers = await holdfast.signals([...sent, { to: other, name: 'go', payload: 1 }])
    expect(answers.map(({ ok }) => ok)).toEqual([true, true, true, false, false, true])
    const error = await refusal(holdfast.signal(run, 'go', 4, { id: 's4' }))
    expect(error).toMatchObject({
      code: 'MAILBOX_FULL',
      family: 'conflict',
      message:
        `The mailbox of run ${run.id} is full: it takes at most 3 (limits.mailbox of createHoldfast()) unread messages. ` +
        'Send it again once the run has read some of them, or raise the limit.',
      details: { runId: run.id, signalId: 's4', limit: 'mailbox', most: 3 },
    })
    expect(await holdfast.signal(run, 'go', 1, { id: 's1' })).toMatchObject({ outcome: 'queued', repeated: true })
    await holdfast.work()
    await waitsFor(holdfast, run)
    expect(await holdfast.signal(run, 'go', 4, { id: 's4' })).toMatchObject({ outcome: 'delivered' })
    expect([await run.result(), await other.result()]).toEqual([[1, 2, 3, 4], [1]])
  })

  it('a full mailbox keeps nobody from completing a token, and a child from reporting its end', async () => {
    const { open } = await make()
    const tokens: string[] = []
    const approval = workflow('approval', async (ctx) => {
      const answer = ctx.token<string>()
      const child = ctx.child(reader, 0)
      await ctx.step('ask', () => void tokens.push(answer.token))
      await ctx.receive('open')
      return [await answer, await child]
    })
    const holdfast = await open({ workflows: [approval, reader], limits: { mailbox: 1 } })
    const run = await holdfast.start(approval)
    // Before anybody works: an end of the child that came first would be the one unread message.
    await holdfast.signal(run, 'spam')
    expect(await refusal(holdfast.signal(run, 'more of it'))).toMatchObject({ code: 'MAILBOX_FULL' })
    await holdfast.work()
    await until(() => tokens.length === 1)
    expect(await holdfast.complete(tokens[0] ?? '', 'yes')).toMatchObject({ runId: run.id })
    const roomy = await open({ limits: { mailbox: 10 } })
    await roomy.signal(run, 'open')
    expect(await run.result()).toEqual(['yes', []])
  })

  it('a dead letter that finds a full mailbox stays dead, and sendOrStart and using(tx) are refused like a signal', async () => {
    const { open, store } = await make()
    const holdfast = await open({ workflows: [reader], limits: { mailbox: 1 } })
    const gone = await holdfast.start(reader, 1)
    await holdfast.signal(gone, go, 'late', { id: 'late' })
    await holdfast.cancel(gone)
    const run = await holdfast.start(reader, 2, { key: 'k' })
    await holdfast.signal(run, 'go', 1)
    const letter = { runId: gone.id, id: 'late' }
    expect(await refusal(holdfast.retryDeadLetter(letter, { to: run }))).toMatchObject({ code: 'MAILBOX_FULL' })
    expect((await holdfast.deadLetters()).letters).toMatchObject([letter])
    const again = holdfast.sendOrStart(reader, 'k', 'go', 2, 2)
    expect(await refusal(again)).toMatchObject({ code: 'MAILBOX_FULL', details: { runId: run.id } })
    if (store.capabilities.transactions !== true) return
    const { transact } = store as unknown as { transact: (work: (tx: unknown) => Promise<unknown>) => Promise<unknown> }
    const refused = await transact.call(store, async (tx) => refusal(holdfast.using(tx).signal(run, 'go', 2)))
    expect(refused).toMatchObject({ code: 'MAILBOX_FULL' })
  })

  it('a topic keeps no more than limits.retained for later subscribers', async () => {
    const { open } = await make()
    const holdfast = await open({ limits: { retained: 2 } })
    for (const on of [prices, jobs]) {
      for (const price of [1, 2]) await holdfast.broadcast(on, price)
      expect(await refusal(holdfast.broadcast(on, 3, { id: 'third' }))).toMatchObject({
        code: 'TOPIC_FULL',
        family: 'conflict',
        message:
          `The topic "${on.name}" is full: it keeps at most 2 (limits.retained of createHoldfast()) broadcasts for later ` +
          'subscribers. Send it again once some of them were taken or have aged, or raise the limit.',
        details: { topic: on.name, signalId: 'third', limit: 'retained', most: 2 },
      })
    }
    const silent = topic<number>('silent')
    for (const price of [1, 2, 3]) await holdfast.broadcast(silent, price)
  })

  it('a run beyond limits.subscribers of a topic gets an error at its wait, which it can catch; the others wait on', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [subscriber], limits: { subscribers: 2 } })
    await holdfast.work()
    const early = [await holdfast.start(subscriber), await holdfast.start(subscriber)]
    for (const run of early) await waitsFor(holdfast, run)
    const late = await holdfast.start(subscriber)
    await until(async () => (await holdfast.query(late, 'refused')) !== undefined)
    expect(await holdfast.query(late, 'refused')).toEqual({
      code: 'TOPIC_FULL',
      message:
        'No more runs can wait on the topic "prices": it takes at most 2 (limits.subscribers of createHoldfast()). ' +
        'Wait again later, or raise the limit.',
      details: { topic: 'prices', limit: 'subscribers', most: 2 },
    })
    expect(await holdfast.broadcast(prices, 12)).toMatchObject({ outcome: 'delivered', runs: 2 })
    expect(await Promise.all(early.map((run) => run.result()))).toEqual([12, 12])
    await waitsFor(holdfast, late)
    await holdfast.signal(late, 'by hand')
    // There is room now, and the topic retains it. What was sent then says nothing about this wait.
    expect(await late.result()).toBe(12)
  })
})
