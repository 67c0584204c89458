// Signals that are answered: the answer is part of the journal of the run that gives it, and reaches the caller, also a process
// that asks again because the first one died.

import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isHoldfastError, topic, workflow, type Holdfast } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { crashEverywhere } from 'holdfast/testing'
import { memoryStore, open, openWorking } from './open.ts'

const shop = workflow('shop', async (ctx, count: number) => {
  const prices = new Map([['tea', 3]])
  for (let left = count; left > 0; left -= 1) {
    const asked = await ctx.receive('price', { message: true, schema: z.object({ of: z.string() }) })
    const price = await ctx.step('look up', () => prices.get(asked.value.of))
    if (price === undefined) await asked.refuse(new RangeError(`No ${asked.value.of} here`))
    else await asked.reply({ price })
  }
  return 'closed'
})
const silent = workflow('silent', async (ctx) => {
  await ctx.receive('price')
  return ctx.receive('end')
})

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no error',
    (error: unknown) => error,
  )
}

const sound = async (holdfast: Holdfast) =>
  expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])

describe('asking a run', () => {
  test('gives its answer, or its refusal with the error as the cause', async () => {
    const holdfast = await openWorking([shop])
    const run = await holdfast.start(shop, 2, { key: 'corner' })
    expect(await holdfast.ask(run, 'price', { of: 'tea' })).toEqual({ price: 3 })
    const refusal = await errorOf(holdfast.ask({ type: 'shop', key: 'corner' }, 'price', { of: 'gold' }))
    expect(refusal).toMatchObject({ code: 'ASK_REFUSED', cause: new RangeError('No gold here') })
    expect(await run.result()).toBe('closed')
    await sound(holdfast)
  })

  test('again with the same id asks nothing new, in this process or another one, also after the end of the run', async () => {
    const store = memoryStore()
    const [asker, worker] = [await open({ store }), await openWorking([shop], { store })]
    const run = await worker.start(shop, 1)
    const asked = { id: 'q-1' }
    expect(await run.ask('price', { of: 'tea' }, asked)).toEqual({ price: 3 })
    expect(await run.result()).toBe('closed')
    for (const holdfast of [asker, worker]) {
      expect(await holdfast.ask(run.id, 'price', { of: 'tea' }, asked)).toEqual({ price: 3 })
    }
    const replies = (await asker.journal(run.id)).filter(({ kind }) => kind === 'replied')
    expect(replies).toMatchObject([{ name: 'price', meta: { to: 'q-1' }, data: { price: 3 } }])
  })

  test('before the run waits, and many at once, gives each its own answer', async () => {
    const store = memoryStore()
    const asker = await open({ store, workflows: [shop] })
    const run = await asker.start(shop, 5)
    const answers = ['tea', 'tea', 'milk', 'tea', 'tea'].map((of) => errorOf(run.ask('price', { of })))
    const worker = await open({ store, workflows: [shop] })
    await worker.work()
    const settled = await Promise.all(answers)
    expect(settled.filter((error) => isHoldfastError(error, 'ASK_REFUSED'))).toHaveLength(1)
    expect(await run.result()).toBe('closed')
  })

  test('that ends without an answer, or has ended, says so', async () => {
    const holdfast = await openWorking([silent])
    const run = await holdfast.start(silent)
    const asked = errorOf(run.ask('price'))
    await run.signal('end')
    expect(await asked).toMatchObject({ code: 'ASK_UNANSWERED', details: { status: 'succeeded', runId: run.id } })
    expect(await errorOf(run.ask('price'))).toMatchObject({ code: 'ASK_UNANSWERED' })
    const cancelled = await holdfast.start(silent)
    const unread = errorOf(cancelled.ask('other'))
    await cancelled.cancel()
    expect(await unread).toMatchObject({ code: 'ASK_UNANSWERED', details: { status: 'cancelled' } })
  })

  test('that does not exist, or was removed, is not found', async () => {
    const holdfast = await open({ workflows: [silent] })
    expect(await errorOf(holdfast.ask('01900000-0000-7000-8000-000000000000', 'x'))).toMatchObject({
      code: 'RUN_NOT_FOUND',
    })
    expect(await errorOf(holdfast.ask({ type: 'silent', key: 'nobody' }, 'x'))).toMatchObject({ code: 'RUN_NOT_FOUND' })
    const run = await holdfast.start(silent)
    const asked = errorOf(run.ask('x'))
    await holdfast.remove(run)
    expect(await asked).toMatchObject({ code: 'RUN_NOT_FOUND' })
  })

  test('that does not answer in time says whether it has read the question', async () => {
    const holdfast = await openWorking([silent])
    const run = await holdfast.start(silent)
    expect(await errorOf(run.ask('other', 1, { timeout: 20 }))).toMatchObject({
      code: 'ASK_TIMEOUT',
      message: expect.stringContaining('it has not read the question') as string,
    })
    await run.signal('price')
    await expect.poll(async () => (await holdfast.journal(run)).some(({ kind }) => kind === 'woken')).toBe(true)
    const controller = new AbortController()
    const asked = errorOf(run.ask('end', 1, { abortSignal: controller.signal }))
    await run.result()
    expect(await asked).toMatchObject({ code: 'ASK_UNANSWERED' })
    const aborted = errorOf((await holdfast.start(silent)).ask('x', 1, { abortSignal: AbortSignal.timeout(20) }))
    expect(await aborted).toMatchObject({ code: 'ASK_TIMEOUT', cause: expect.anything() as unknown })
  })

  test('is given up at once by a signal that has fired, and asks nothing', async () => {
    const holdfast = await open({ workflows: [silent] })
    const run = await holdfast.start(silent)
    const asked = await errorOf(run.ask('x', 1, { abortSignal: AbortSignal.abort('enough') }))
    expect(asked).toMatchObject({ code: 'ASK_TIMEOUT', details: { sent: false } })
    expect(await holdfast.unread(run)).toMatchObject({ names: [] })
  })

  test('names what cannot be asked', async () => {
    const holdfast = await open({ workflows: [silent] })
    const run = await holdfast.start(silent)
    expect(await errorOf(run.ask(null as never))).toMatchObject({ code: 'INVALID_NAME' })
    const ofNoRun = await errorOf(holdfast.ask('nope', 'x'))
    expect(ofNoRun).toMatchObject({ code: 'RUN_NOT_FOUND', message: 'There is no run "nope" in this store.' })
    const ofNoKey = await errorOf(holdfast.ask({ type: 'silent', key: 'k' }, 'x'))
    expect(ofNoKey).toMatchObject({
      code: 'RUN_NOT_FOUND',
      message: expect.stringContaining('no run of type "silent" with the key "k" in this store') as string,
    })
  })

  test('is given up when its Holdfast is closed', async () => {
    const holdfast = await open({ workflows: [silent] })
    const asked = errorOf((await holdfast.start(silent)).ask('x'))
    await holdfast.close()
    expect(await asked).toMatchObject({ code: 'CLOSED' })
  })

  test('encrypts question and answer', async () => {
    const codec = encryptingCodec({ keys: { one: randomBytes(32).toString('base64') }, current: 'one' })
    const store = memoryStore()
    const holdfast = await openWorking([shop], { codec, store })
    const run = await holdfast.start(shop, 1)
    expect(await run.ask('price', { of: 'tea' })).toEqual({ price: 3 })
    const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 100 }])
    expect(JSON.stringify(loaded)).not.toContain('price":')
  })
})

describe('a message', () => {
  test('is answered once, and waits like any other, in a race too', async () => {
    const twice = workflow('twice', async (ctx) => {
      const { tag, value } = await ctx.race({ got: ctx.receive<number>('n', { message: true }), late: ctx.sleep('1h') })
      if (tag === 'late') return 'late'
      await value.reply(value.value + 1)
      const codes: unknown[] = []
      const note = (error: unknown): void => void codes.push((error as { readonly code?: unknown }).code)
      await value.reply(0).catch(note)
      await value.refuse(new Error('no')).catch(note)
      return codes
    })
    const holdfast = await openWorking([twice])
    const run = await holdfast.start(twice)
    expect(await run.ask('n', 41)).toBe(42)
    expect(await run.result()).toEqual(['ALREADY_ANSWERED', 'ALREADY_ANSWERED'])
  })

  test('may come from a topic, whose schema checks it, and be refused with anything', async () => {
    const questions = topic('questions', { schema: z.number() })
    const sage = workflow('sage', async (ctx) => {
      const first = await ctx.receive(questions, { message: true })
      const circular: { self?: unknown; message: string } = { message: 'odd' }
      circular.self = circular
      await first.refuse(circular)
      return [first.value, JSON.stringify(first)]
    })
    const holdfast = await openWorking([sage])
    const run = await holdfast.start(sage)
    const refused = await errorOf(run.ask(questions, 7, { id: 'q' }))
    expect(refused).toMatchObject({ code: 'ASK_REFUSED', cause: expect.any(Error) as unknown })
    expect(await run.result()).toEqual([7, '{"id":"q","value":7}'])
  })

  test('is not answered inside a step', async () => {
    const inside = workflow('inside', { retry: 'none' }, async (ctx) => {
      const asked = await ctx.receive('n', { message: true })
      await ctx.step('answer', () => asked.reply(1))
    })
    const holdfast = await openWorking([inside])
    const run = await holdfast.start(inside)
    expect(await errorOf(run.ask('n'))).toMatchObject({ code: 'ASK_UNANSWERED' })
    await expect(run.result()).rejects.toThrow(/inside of step "answer"/)
  })

  test('is answered exactly once, at whichever commit the process dies', async () => {
    const report = await crashEverywhere(shop, 1, {
      during: async (t, run) => {
        const asked = run.ask('price', { of: 'tea' }, { id: 'q-1' })
        await t.drain({ time: true })
        expect(await asked).toEqual({ price: 3 })
      },
      check: async ({ holdfast, status }) => {
        expect(status).toBe('succeeded')
        await sound(holdfast)
      },
    })
    expect(report.trials).toBeGreaterThan(4)
  })
})

describe('a completion token that is refused', () => {
  const approval = workflow('approval', async (ctx) => {
    const asked = ctx.token()
    ctx.expose('token', asked.token)
    try {
      return await asked
    } catch (error) {
      return error
    }
  })
  const tokenOf = async (holdfast: Holdfast, id: string): Promise<string> => {
    await expect.poll(async () => holdfast.query(id, 'token')).toBeTypeOf('string')
    return (await holdfast.query(id, 'token')) as string
  }

  test('makes the wait fail with the error, once', async () => {
    const holdfast = await openWorking([approval])
    const run = await holdfast.start(approval)
    const token = await tokenOf(holdfast, run.id)
    expect(await holdfast.refuse('no token', new Error('x'))).toEqual({ outcome: 'invalid-token' })
    expect(await holdfast.refuse(token, new TypeError('Not today'))).toMatchObject({ runId: run.id })
    expect(await run.result()).toEqual(new TypeError('Not today'))
    expect(await holdfast.complete(token, 1)).toMatchObject({ outcome: 'already-completed' })
    await sound(holdfast)
  })

  test('fails a run that does not catch it, and is decrypted like any answer', async () => {
    const strict = workflow('strict', { retry: 'none' }, async (ctx) => {
      const asked = ctx.token()
      ctx.expose('token', asked.token)
      return asked
    })
    const codec = encryptingCodec({ keys: { one: randomBytes(32).toString('base64') }, current: 'one' })
    const holdfast = await openWorking([strict], { codec })
    const run = await holdfast.start(strict)
    await holdfast.refuse(await tokenOf(holdfast, run.id), new Error('Not today'))
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_FAILED', cause: new Error('Not today') })
  })
})

test('an answer that cannot be stored leaves its message to be answered', async () => {
  const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown }).code
  const careless = workflow('careless', async (ctx) => {
    const asked = await ctx.receive('price', { message: true })
    const cyclic: Record<string, unknown> = {}
    cyclic['self'] = cyclic
    const first = asked.reply(cyclic)
    await first.catch((error: unknown) => asked.refuse(error))
    const second = asked.reply('too early').catch((error: unknown) => error)
    await ctx.receive('end')
    return [codeOf(await second), await asked.reply('too late').catch(codeOf)]
  })
  const holdfast = await openWorking([careless])
  const run = await holdfast.start(careless)
  expect(await errorOf(run.ask('price'))).toMatchObject({ code: 'ASK_REFUSED' })
  await run.signal('end')
  expect(await run.result()).toEqual(['ALREADY_ANSWERED', 'ALREADY_ANSWERED'])
})
