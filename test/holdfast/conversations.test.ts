// Client and body together: what is sent from outside is what the body gets, by every way in, in this process and from others.

import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { operation, topic, workflow } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { gate, until } from './gate.ts'
import { memoryStore, open, openWorking } from './open.ts'
import { virtualWorld } from './virtual-world.ts'

const news = topic<string>('news')
const jobs = topic<number>('jobs', { delivery: 'one' })

const collector = workflow('collector', async (ctx, count: number) => {
  const got: unknown[] = []
  while (got.length < count) got.push(await ctx.receive('item'))
  return got
})
const reader = workflow('reader', async (ctx) => ctx.receive(news))
const asking = workflow('asking', async (ctx) => {
  const answer = ctx.token()
  ctx.expose('token', answer.token)
  const value = await answer
  ctx.expose('answer', value)
  return value
})

describe('a body that waits', () => {
  test('gets every signal in the order of sending, whether it waits already or not (WC-W1)', async () => {
    const holdfast = await openWorking([collector])
    const run = await holdfast.start(collector, 6)
    await holdfast.signals([1, 2, 3].map((payload) => ({ to: run, name: 'item', payload })))
    await until(async () => (await run.status()) === 'waiting')
    for (const payload of [4, 5, 6]) await run.signal('item', payload)
    expect(await run.result()).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('learns at once of what comes while it is moving', async () => {
    const step = gate()
    const busy = workflow('busy', async (ctx) => {
      const [signal] = await ctx.all([ctx.receive('stop')])
      await ctx.step('late', () => step.passed)
      return signal
    })
    const { open: openHere, after } = virtualWorld()
    const holdfast = await openHere({ workflows: [busy] })
    await after(holdfast.work())
    const run = await after(holdfast.start(busy))
    await after(holdfast.signal(run, 'stop', 'now'))
    step.open()
    expect(await after(run.result())).toBe('now')
  })

  test('in another process goes on with what this one sends', async () => {
    const store = memoryStore()
    const here = await open({ store, workflows: [collector] })
    await openWorking([collector], { store })
    const run = await here.start(collector, 2)
    await run.signal('item', 'a')
    await here.sendOrStart(collector, 'unused', 'item', 'x', 1)
    await run.signal('item', 'b')
    expect(await run.result()).toEqual(['a', 'b'])
    const [other] = (await here.find({ key: 'unused' })).runs
    expect(await here.run(other ?? '').result()).toEqual(['x'])
  })

  test('on a topic gets the broadcast, with an encrypting codec as well (WC-W2)', async () => {
    const codec = encryptingCodec({ keys: { k: randomBytes(32) }, current: 'k' })
    const worker = workflow('worker', async (ctx) => ctx.receive(jobs))
    const holdfast = await openWorking([reader, worker], { codec })
    const readers = [await holdfast.start(reader), await holdfast.start(reader)]
    const worked = await holdfast.start(worker)
    for (const run of [...readers, worked]) await until(async () => (await run.status()) === 'waiting')
    expect(await holdfast.submitBatch([operation.broadcast(news, 'hello'), operation.broadcast(jobs, 7)])).toEqual([
      { ok: true, value: { outcome: 'delivered', runs: 2 } },
      { ok: true, value: { outcome: 'delivered', runs: 1 } },
    ])
    expect(await Promise.all(readers.map((run) => run.result()))).toEqual(['hello', 'hello'])
    expect(await worked.result()).toBe(7)
    const journal = await holdfast.journal(worked)
    expect(journal.find(({ kind }) => kind === 'woken')?.data).toBe(7)
  })

  test('for a token gets the value that completes it, and shows what it exposes, also after its end', async () => {
    const holdfast = await openWorking([asking])
    const run = await holdfast.start(asking)
    await until(async () => (await holdfast.query(run, 'token')) !== undefined)
    const token = (await holdfast.query(run, 'token')) as string
    expect(await holdfast.complete(token, { approved: true })).toMatchObject({ runId: run.id })
    expect(await run.result()).toEqual({ approved: true })
    expect(await holdfast.complete(token, { approved: false })).toEqual({ outcome: 'already-completed', runId: run.id })
    expect(await holdfast.query(run, 'answer')).toEqual({ approved: true })
  })

  test('for a child that is refused by its options says why, and goes on', async () => {
    const child = workflow('child', (_ctx, n: number) => n)
    const parent = workflow('parent', { retry: 'none' }, async (ctx) => ctx.child(child, 1, { priority: 0.5 }))
    const holdfast = await openWorking([parent, child])
    const run = await holdfast.start(parent)
    await expect(run.result()).rejects.toMatchObject({ cause: { code: 'INVALID_OPTION' } })
  })
})

describe('what was passed on and not read', () => {
  test('by a queue goes to another run when the first ends, encrypted or not (WC-W3)', async () => {
    const codec = encryptingCodec({ keys: { k: randomBytes(32) }, current: 'k' })
    const waiter = workflow('waiter', async (ctx) => ctx.receive(jobs))
    const store = memoryStore()
    const first = await open({ store, workflows: [waiter], codec })
    const worker = await first.work()
    const run = await first.start(waiter)
    await until(async () => (await run.status()) === 'waiting')
    await worker.stop()
    await first.broadcast(jobs, 7)
    await run.cancel()
    await first.work()
    expect(await (await first.start(waiter)).result()).toBe(7)
  })

  test('by two runs under the same id goes to two others: neither takes the place of the other (WC-W3)', async () => {
    const waiter = workflow('waiter', async (ctx) => ctx.receive(jobs))
    const holdfast = await open({ workflows: [waiter] })
    for (const payload of [1, 2]) {
      const run = await holdfast.start(waiter)
      await holdfast.signal(run, jobs, payload, { id: 'same' })
      await run.cancel()
    }
    await holdfast.work()
    const others = [await holdfast.start(waiter), await holdfast.start(waiter)]
    expect(new Set(await Promise.all(others.map((run) => run.result())))).toEqual(new Set([1, 2]))
  })
})
