// A signal to the run that has a key, or to a run that is started for it: never a run without its signal, never a signal without
// a run, and never two runs.

import { describe, expect, test } from 'vitest'
import { topic, workflow, type Holdfast, type HoldfastOptions } from 'holdfast'
import { messagesOf, takeUp } from './by-hand.ts'
import { memoryStore, open } from './open.ts'
import { changed } from './virtual-world.ts'

const cart = workflow('cart', (_ctx, customer: string) => customer)

async function world(options: Partial<HoldfastOptions> = {}) {
  const store = memoryStore()
  const holdfast = await open({ store, workflows: [cart], ...options })
  return { store, holdfast }
}

const add = (holdfast: Holdfast, item: string) => holdfast.sendOrStart(cart, 'ada', 'add', item, 'Ada')

describe('sendOrStart', () => {
  test('starts a run that finds the signal in its mailbox from the beginning', async () => {
    const { store, holdfast } = await world()
    const sent = await holdfast.sendOrStart(cart, 'ada', 'add', 'tea', 'Ada', { id: 's-1', tags: ['vip'] })
    expect(sent).toEqual({ outcome: 'started', runId: expect.any(String) as string, signalId: 's-1' })
    const { runId } = sent as { readonly runId: string }
    expect(await holdfast.get(runId)).toMatchObject({ key: 'ada', status: 'pending', tags: ['vip'] })
    expect(await messagesOf(store, { id: runId })).toMatchObject([{ id: 's-1', name: 'add', data: '"tea"' }])
  })

  test('sends it to the run that has the key, whatever input was given this time', async () => {
    const { store, holdfast } = await world()
    const run = await holdfast.start(cart, 'Someone else', { key: 'ada' })
    expect(await add(holdfast, 'tea')).toMatchObject({ outcome: 'queued', runId: run.id })
    await (await takeUp(store, 'cart')).park()
    expect(await add(holdfast, 'milk')).toEqual({ outcome: 'delivered', runId: run.id })
    expect(await messagesOf(store, run)).toHaveLength(2)
  })

  test('of twenty at once from two processes makes one run with twenty signals', async () => {
    const store = memoryStore()
    const both = await Promise.all([open({ store, workflows: [cart] }), open({ store, workflows: [cart] })])
    const items = Array.from({ length: 20 }, (_, n) => `item ${n}`)
    const answers = await Promise.all(items.map((item, n) => add(both[n % 2] as Holdfast, item)))
    expect(answers.filter(({ outcome }) => outcome === 'started')).toHaveLength(1)
    const ids = new Set(answers.map(({ runId }) => runId))
    expect(ids.size).toBe(1)
    const messages = await messagesOf(store, { id: [...ids][0] ?? '' })
    expect(messages.map(({ data }) => JSON.parse(data) as string).toSorted()).toEqual(items.toSorted())
  })

  test('starts anew if the run that had the key ended while the signal was on its way', async () => {
    const store = memoryStore()
    const aside = await open({ store, workflows: [cart] })
    const first = await aside.start(cart, 'Ada', { key: 'ada' })
    const holdfast = await open({
      workflows: [cart],
      store: changed(store, {
        deliver: async (messages) => {
          await first.cancel()
          return store.deliver(messages)
        },
      }),
    })
    const sent = await add(holdfast, 'tea')
    expect(sent.outcome).toBe('started')
    expect(sent.runId).not.toBe(first.id)
    expect(await messagesOf(store, { id: sent.runId })).toMatchObject([{ data: '"tea"' }])
  })

  test('leaves no dead letter behind when it does', async () => {
    const added = topic<string>('added', { onUnread: 'dead-letter' })
    const store = memoryStore()
    const aside = await open({ store, workflows: [cart] })
    const first = await aside.start(cart, 'Ada', { key: 'ada' })
    const holdfast = await open({
      workflows: [cart],
      store: changed(store, {
        deliver: async (messages) => {
          await first.cancel()
          return store.deliver(messages)
        },
      }),
    })
    expect(await holdfast.sendOrStart(cart, 'ada', added, 'tea', 'Ada')).toMatchObject({ outcome: 'started' })
    expect((await holdfast.deadLetters()).letters).toEqual([])
  })

  test('repeated under an idempotency key names the run of the first time, also when that is over', async () => {
    const { holdfast } = await world()
    const once = () => holdfast.sendOrStart(cart, 'ada', 'add', 'tea', 'Ada', { id: 's', idempotencyKey: 'request-1' })
    const first = await once()
    await holdfast.cancel(first.runId)
    expect(await once()).toMatchObject({ runId: first.runId, repeated: true })
    expect(await holdfast.count()).toMatchObject({ count: 1 })
  })

  test('checks what a start and a signal check', async () => {
    const { holdfast } = await world()
    await expect(holdfast.sendOrStart('cart', 'ada', '', 1, 'Ada')).rejects.toMatchObject({ code: 'INVALID_NAME' })
    await expect(holdfast.sendOrStart('card', 'ada', 'x', 1, 'Ada')).rejects.toMatchObject({ code: 'WORKFLOW_UNKNOWN' })
    await expect(
      holdfast.sendOrStart(cart, 'ada', 'x', 1, 'Ada', { onConflict: 'error' } as never),
    ).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await holdfast.count()).toMatchObject({ count: 0 })
  })
})
