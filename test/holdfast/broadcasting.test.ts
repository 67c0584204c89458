// Broadcasts: who gets them is a matter of when one began and ceased to wait on the topic, as core/model/topic.ts says. Here the
// rule is met through the client; who waits is written by hand.

import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { topic, workflow, type Topic } from 'holdfast'
import { createVirtualClock } from 'holdfast/testing'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { messagesOf, takeUp, type HandHeld } from './by-hand.ts'
import { open } from './open.ts'

const reader = workflow('reader', (_ctx, n: number) => n)

async function world() {
  const clock = createVirtualClock()
  const store = new MemoryStore({ clock })
  const holdfast = await open({ store, workflows: [reader], ports: { clock } })
  let started = 0
  /** A run that waits on the topic from here on. */
  const waiter = async (on: Topic): Promise<HandHeld> => {
    const { id } = await holdfast.start(reader, (started += 1))
    const held = await takeUp(store, 'reader', id)
    await held.park(on)
    return held
  }
  const read = async (held: HandHeld): Promise<unknown[]> =>
    (await messagesOf(store, held)).map(({ data }) => JSON.parse(data) as unknown)
  return { clock, store, holdfast, waiter, read }
}

describe('a broadcast to a queue', () => {
  const jobs = topic<number>('jobs', { delivery: 'one' })

  test('goes to the run that has waited longest, and to no other (WC-W2)', async () => {
    const { holdfast, waiter, read, clock } = await world()
    const first = await waiter(jobs)
    await clock.advance('1s')
    const second = await waiter(jobs)
    expect(await holdfast.broadcast(jobs, 1)).toEqual({ outcome: 'delivered', runs: 1 })
    expect([await read(first), await read(second)]).toEqual([[1], []])
    expect(await holdfast.broadcast(jobs, 2)).toEqual({ outcome: 'delivered', runs: 1 })
    expect([await read(first), await read(second)]).toEqual([[1], [2]])
  })

  test('waits for the next that waits if nobody does, and is then gone (WC-W2)', async () => {
    const { holdfast, waiter, read } = await world()
    expect(await holdfast.broadcast(jobs, 1, { id: 'job-1' })).toEqual({ outcome: 'queued', signalId: 'job-1' })
    const [first, second] = [await waiter(jobs), await waiter(jobs)]
    expect([await read(first), await read(second)]).toEqual([[1], []])
  })

  test('is had by nobody once it has expired (WC-W3)', async () => {
    const { clock, holdfast, waiter, read } = await world()
    await holdfast.broadcast(jobs, 1, { expiresIn: '1 min' })
    await holdfast.broadcast(jobs, 2, { expiresIn: '3 min' })
    await clock.advance('2 min')
    expect(await read(await waiter(jobs))).toEqual([2])
  })
})

describe('a broadcast to all', () => {
  const news = topic<string>('news', { schema: z.string() })
  const kept = topic<string>('kept', { retain: '1 h' })

  test('goes to every run that waits, and to none that comes later (WC-W3)', async () => {
    const { holdfast, waiter, read } = await world()
    const [first, second] = [await waiter(news), await waiter(news)]
    expect(await holdfast.broadcast(news, 'hello')).toEqual({ outcome: 'delivered', runs: 2 })
    const third = await waiter(news)
    expect([await read(first), await read(second), await read(third)]).toEqual([['hello'], ['hello'], []])
  })

  test('that is retained goes to those who come while it is kept, and to none afterwards (WC-W3)', async () => {
    const { clock, holdfast, waiter, read } = await world()
    expect(await holdfast.broadcast(kept, 'hello')).toMatchObject({ outcome: 'queued' })
    await clock.advance('59 min')
    expect(await read(await waiter(kept))).toEqual(['hello'])
    await clock.advance('2 min')
    expect(await read(await waiter(kept))).toEqual([])
  })

  test('sent twice under one id is delivered once, and answered as the first time', async () => {
    const { holdfast, waiter, read } = await world()
    const run = await waiter(news)
    expect(await holdfast.broadcast(news, 'hello', { id: 'n-1' })).toEqual({ outcome: 'delivered', runs: 1 })
    expect(await holdfast.broadcast(news, 'again', { id: 'n-1' })).toEqual({
      outcome: 'delivered',
      runs: 1,
      repeated: true,
    })
    expect(await read(run)).toEqual(['hello'])
  })

  test('does not take the place of a signal whose id reads like its own, nor of another topic', async () => {
    const { holdfast, store, waiter, read } = await world()
    const [short, long] = [topic<string>('a'), topic<string>('a:b')]
    const run = await waiter(short)
    await holdfast.signal(run.id, 'x', 'signal', { id: 'a:b:c' })
    await holdfast.broadcast(short, 'short', { id: 'b:c' })
    expect(await read(run)).toEqual(['signal', 'short'])
    const again = await takeUp(store, 'reader', run.id)
    await again.park(long)
    await holdfast.broadcast(long, 'long', { id: 'c' })
    expect(await read(run)).toEqual(['signal', 'short', 'long'])
  })

  test('is checked by the schema of its topic', async () => {
    const { holdfast } = await world()
    await expect(holdfast.broadcast(news, 3 as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('needs a topic that was declared', async () => {
    const { holdfast } = await world()
    await expect(holdfast.broadcast('news' as never, 'x')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.broadcast(news, 'x', { expiresIn: 'soon' as never })).rejects.toMatchObject({
      code: 'INVALID_DURATION',
    })
  })
})

describe('a batch of broadcasts and signals', () => {
  test('reaches a run that waits in the order in which it was submitted, with one delivery (WC-E7)', async () => {
    const { holdfast, store, waiter } = await world()
    const news = topic<string>('news')
    const run = await waiter(news)
    const answers = await holdfast.submitBatch([
      { kind: 'signal', to: run.id, name: 'a', payload: 1 },
      { kind: 'broadcast', topic: news, payload: 'b' },
      { kind: 'signal', to: run.id, name: 'c', payload: 3 },
    ])
    expect(answers).toMatchObject([
      { ok: true, value: { outcome: 'delivered' } },
      { ok: true, value: { outcome: 'delivered', runs: 1 } },
      { ok: true, value: { runId: run.id } },
    ])
    expect((await messagesOf(store, run)).map(({ name }) => name)).toEqual(['a', 'news', 'c'])
  })
})
