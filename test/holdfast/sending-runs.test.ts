// Bodies that send: to runs, to topics, to themselves. What they send arrives with the commit that says so, once, and nothing
// about a receiver fails them.

import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createTest, crashEverywhere } from 'holdfast/testing'
import { topic, workflow } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { keepLines, memoryStore, open, openWorking } from './open.ts'

const news = topic<string>('news', { retain: '1h' })
const jobs = topic('jobs', { delivery: 'one', schema: z.object({ n: z.number() }) })
const slow = topic('slow', { schema: z.string().refine(async (text) => text !== 'bad') })

const reader = workflow('reader', { unique: { key: 'key' } }, async (ctx, { name }: { key: string; name: string }) =>
  ctx.receive(name),
)
const collector = workflow('collector', async (ctx, count: number) => {
  const got: unknown[] = []
  while (got.length < count) got.push(await ctx.receive('item'))
  return got
})

describe('a body that sends a signal', () => {
  test('reaches a run by its id, its handle and its key (WC-W1)', async () => {
    const sender = workflow('sender', async (ctx, id: string) => {
      await ctx.signal(id, 'item', 1)
      await ctx.signal({ id }, 'item', { two: new Date(0) })
      await ctx.signal({ type: 'reader', key: 'a' }, 'go', 'by type')
      await ctx.signal({ workflow: reader, key: 'b' }, 'go', 'by workflow')
    })
    const holdfast = await openWorking([sender, reader, collector])
    const target = await holdfast.start(collector, 2)
    const [a, b] = [
      await holdfast.start(reader, { key: 'a', name: 'go' }),
      await holdfast.start(reader, { key: 'b', name: 'go' }),
    ]
    await (await holdfast.start(sender, target.id)).result()
    expect(await target.result()).toEqual([1, { two: new Date(0) }])
    expect([await a.result(), await b.result()]).toEqual(['by type', 'by workflow'])
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  test('gets its own signal where it waits for it', async () => {
    const self = workflow('self', async (ctx) => {
      await ctx.signal(ctx.run.id, 'note', 'to me')
      return ctx.receive('note')
    })
    const holdfast = await openWorking([self])
    expect(await (await holdfast.start(self)).result()).toBe('to me')
  })

  test('that nobody awaits is sent all the same, also where its target has to be looked up', async () => {
    const hasty = workflow('hasty', async (ctx, id: string) => {
      void ctx.signal(id, 'item', 1)
      void ctx.signal({ type: 'reader', key: 'a' }, 'go', 2)
      return 'gone'
    })
    const holdfast = await openWorking([hasty, collector, reader])
    const [target, keyed] = [await holdfast.start(collector, 1), await holdfast.start(reader, { key: 'a', name: 'go' })]
    expect(await (await holdfast.start(hasty, target.id)).result()).toBe('gone')
    expect([await target.result(), await keyed.result()]).toEqual([[1], 2])
  })

  test('to nobody goes on, and says so where a key names no run', async () => {
    const lost = workflow('lost', async (ctx) => {
      await ctx.signal('01900000-0000-7000-8000-000000000000', 'item')
      await ctx.signal('no id at all', 'item')
      await ctx.signal({ type: 'reader', key: 'nobody' }, 'item')
      return 'done'
    })
    const logger = keepLines()
    const holdfast = await openWorking([lost, reader], { logger })
    const run = await holdfast.start(lost)
    expect(await run.result()).toBe('done')
    const warnings = logger.lines.filter(({ message }) => message.includes('to a run that does not exist'))
    expect(warnings).toHaveLength(2)
    const sent = (await holdfast.journal(run)).filter(({ kind }) => kind === 'signal-sent')
    expect(sent.map(({ name, meta }) => [name, meta === null])).toEqual([
      ['item', false],
      ['item#2', true],
      ['item#3', true],
    ])
  })

  test('with arguments that are wrong rejects, and records nothing', async () => {
    const wrong = workflow('wrong', async (ctx) => {
      const errors: unknown[] = []
      const note = (error: Error & { code?: string }) => errors.push(error.code)
      await ctx.signal(ctx.run.id, 'token:1').catch(note)
      await ctx.signal({ key: 'a' } as never, 'item').catch(note)
      await ctx.signal(ctx.run.id, 'item', () => 1).catch(note)
      await ctx.signal(ctx.run.id, jobs, { n: 'x' } as never).catch(note)
      await ctx.broadcast(slow, 'bad').catch(note)
      await ctx.broadcast('news' as never, 1).catch(note)
      await ctx.broadcast(news, 'x', { expiresIn: -1 }).catch(note)
      return errors
    })
    const holdfast = await openWorking([wrong])
    const run = await holdfast.start(wrong)
    expect(await run.result()).toEqual([
      'INVALID_NAME',
      'INVALID_OPTION',
      'NOT_STORABLE',
      'INVALID_INPUT',
      'INVALID_INPUT',
      'INVALID_OPTION',
      'INVALID_DURATION',
    ])
    expect((await holdfast.journal(run)).map(({ kind }) => kind)).toEqual(['started', 'succeeded'])
  })

  test('inside a step is refused', async () => {
    const inside = workflow('inside', { retry: 'none' }, async (ctx) => {
      await ctx.step('send', () => ctx.signal(ctx.run.id, 'item'))
    })
    const holdfast = await openWorking([inside])
    await expect((await holdfast.start(inside)).result()).rejects.toThrow(/ctx\.signal was called inside of step/)
  })

  test('encrypts it for its receiver, which alone reads it, and shows it in its own journal', async () => {
    const keys = { one: randomBytes(32).toString('base64') }
    const codec = encryptingCodec({ keys, current: 'one' })
    const sender = workflow('sender', async (ctx, id: string) => {
      await ctx.signal(id, 'item', 'secret')
      await ctx.broadcast(news, 'open')
    })
    const listener = workflow('listener', async (ctx) => ctx.receive(news))
    const holdfast = await openWorking([sender, collector, listener], { codec })
    const target = await holdfast.start(collector, 1)
    const run = await holdfast.start(sender, target.id)
    await run.result()
    expect(await target.result()).toEqual(['secret'])
    expect(await (await holdfast.start(listener)).result()).toBe('open')
    const sent = (await holdfast.journal(run)).filter(({ kind }) => kind.endsWith('-sent'))
    expect(sent.map(({ data }) => data)).toEqual(['secret', 'open'])
  })
})

test('what a run has sent moves to another key with its journal', async () => {
  const [one, two] = [1, 2].map(() => randomBytes(32).toString('base64')) as [string, string]
  const sender = workflow('sender', async (ctx, id: string) => {
    await ctx.signal(id, 'item', 'secret')
    await ctx.broadcast(news, 'open')
    const asked = await ctx.receive('ask', { message: true })
    await asked.reply('answer')
  })
  const store = memoryStore()
  const before = await openWorking([sender, collector], {
    store,
    codec: encryptingCodec({ keys: { one }, current: 'one' }),
  })
  const target = await before.start(collector, 1)
  const run = await before.start(sender, target.id)
  expect(await run.ask('ask', null, { id: 'q' })).toBe('answer')
  await run.result()
  await target.result()
  await before.close()
  const both = await open({ store, codec: encryptingCodec({ keys: { one, two }, current: 'two' }) })
  expect(await both.rekey()).toMatchObject({ unreadable: 0 })
  const after = await open({ store, workflows: [sender], codec: encryptingCodec({ keys: { two }, current: 'two' }) })
  const read = (await after.journal(run.id)).filter(({ kind }) => kind.endsWith('-sent') || kind === 'replied')
  expect(read.map(({ data }) => data)).toEqual(['secret', 'open', 'answer'])
  expect(await after.ask(run.id, 'ask', null, { id: 'q' })).toBe('answer')
  expect(JSON.stringify(await after.export(run.id))).toContain('secret')
  expect(await after.replay(run.id)).toMatchObject({ outcome: 'same' })
})

test('a full mailbox keeps no sender waiting, and gets everything in order when it is read', async () => {
  const late = workflow('late', async (ctx) => {
    await ctx.receive('begin')
    const got: unknown[] = []
    while (got.length < 6) got.push(await ctx.receive('item'))
    return got
  })
  const sender = workflow('sender', async (ctx, id: string) => {
    for (const n of [1, 2, 3, 4, 5, 6]) await ctx.signal(id, 'item', n)
    return 'sent'
  })
  const holdfast = await openWorking([late, sender], { limits: { mailbox: 2 } })
  const target = await holdfast.start(late)
  expect(await (await holdfast.start(sender, target.id)).result()).toBe('sent')
  expect((await holdfast.unread(target)).names).toMatchObject([{ name: 'item', count: 2 }])
  await holdfast.signal(target, 'begin')
  expect(await target.result()).toEqual([1, 2, 3, 4, 5, 6])
})

describe('a body that broadcasts', () => {
  test('reaches every subscriber of a topic, and one of a queue (WC-W2)', async () => {
    const speaker = workflow('speaker', async (ctx) => {
      await ctx.broadcast(news, 'hello', { expiresIn: '1h' })
      await ctx.broadcast(jobs, { n: 1 })
      await ctx.broadcast(jobs, { n: 2 })
    })
    const listener = workflow('listener', async (ctx) => [await ctx.receive(news), (await ctx.receive(jobs)).n])
    const holdfast = await openWorking([speaker, listener])
    await (await holdfast.start(speaker)).result()
    const runs = [await holdfast.start(listener), await holdfast.start(listener)]
    const got = await Promise.all(runs.map((run) => run.result()))
    expect(got.map(([text]) => text)).toEqual(['hello', 'hello'])
    expect(new Set(got.map(([, n]) => n))).toEqual(new Set([1, 2]))
  })
})

describe('a body that sends, in a process that dies at every commit,', () => {
  const counter = workflow('counter', async (ctx) => {
    const got: unknown[] = []
    while (got.at(-1) !== 'end') got.push(await ctx.receive('item'))
    return got
  })
  const worker = workflow('worker', async (ctx) => {
    const first = await ctx.receive(jobs)
    const second = await ctx.race({ again: ctx.receive(jobs), late: ctx.sleep('1h') })
    return [first.n, second.tag]
  })
  const order = workflow('order', async (ctx) => {
    const [{ id }, job] = await Promise.all([ctx.start(counter, undefined, { key: 'k' }), ctx.start(worker)])
    await Promise.all([
      ctx.signal(id, 'item', 1),
      ctx.step('ship', ({ idempotencyKey }) => idempotencyKey.length > 0),
      ctx.broadcast(jobs, { n: 7 }),
      ctx.signal({ type: 'counter', key: 'k' }, 'item', 2),
    ])
    await ctx.signal(ctx.run.id, 'own', 3)
    const own = await ctx.receive('own')
    await ctx.signal(id, 'item', own)
    await ctx.signal(id, 'item', 'end')
    return [await ctx.waitFor(id), await ctx.waitFor(job.id)]
  })

  test('sends each message exactly once (WC-W1)', async () => {
    const report = await crashEverywhere(order, undefined, {
      workflows: [counter, worker],
      sameOutput: false,
      check: async ({ output, holdfast }) => {
        const [counted, worked] = output ?? []
        expect(counted).toMatchObject({ status: 'succeeded' })
        const items = (counted as { readonly output: readonly unknown[] }).output
        // A target that is looked up may come in between, and never twice.
        expect([items.length, new Set(items)]).toEqual([4, new Set([1, 2, 3, 'end'])])
        expect(worked).toMatchObject({ output: [7, 'late'] })
        expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
      },
    })
    expect(report.trials).toBeGreaterThan(10)
  })

  test('and is replayed without sending again', async () => {
    const t = await createTest({ workflows: [order, counter, worker] })
    const run = await t.start(order)
    await t.drain()
    await t.crash()
    await t.advance('2h')
    expect(await run.status()).toBe('succeeded')
    const kinds = (await t.journal(run)).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'signal-sent')).toHaveLength(5)
    expect(kinds.filter((kind) => kind === 'broadcast-sent')).toHaveLength(1)
    await t.close()
  })
})
