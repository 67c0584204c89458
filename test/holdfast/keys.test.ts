// Who may be called what: business keys in their scopes, idempotency keys, ids. One name, one run, under any race.

import { describe, expect, it } from 'vitest'
import { HoldfastError, compositeValue, workflow, type Holdfast, type StartOptions } from 'holdfast'
import { z } from 'zod'
import { everyStore } from './stores.ts'
import { virtualWorld } from './virtual-world.ts'

const order = workflow('order', async (ctx, input: { id: number }) => {
  await ctx.sleep('1 day')
  return input.id
})
const other = workflow('other', (_ctx, input: { id: number }) => input.id)
const orderTwo = workflow('order', { version: 2 }, async (ctx) => void (await ctx.sleep('1 day')))

const errorOf = async (promise: Promise<unknown>): Promise<HoldfastError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof HoldfastError) return error
  throw new Error('It was expected to be refused')
}

describe.each(everyStore)('on the $name store', ({ make }) => {
  it.each([
    ['key', { key: 'order-1', onConflict: 'return' }],
    ['idempotencyKey', { idempotencyKey: 'request-1' }],
    ['id', { id: '01890a5d-ac96-774b-bcce-b302099a8057' }],
  ] satisfies [string, StartOptions][])(
    'SW-U1 HE-U3 50 starts at once from five Holdfasts with one %s make one run',
    async (_what, options) => {
      const { open } = await make()
      const holdfasts = await Promise.all(Array.from({ length: 5 }, () => open({ workflows: [order] })))
      const starts = holdfasts.flatMap((holdfast) =>
        Array.from({ length: 10 }, () => holdfast.start(order, { id: 1 }, options)),
      )
      const handles = await Promise.all(starts)
      expect(new Set(handles.map(({ id }) => id)).size).toBe(1)
      expect(handles.filter(({ created }) => created)).toHaveLength(1)
      const [holdfast] = holdfasts as [Holdfast]
      expect((await holdfast.find()).runs).toHaveLength(1)
    },
  )

  it('HE-U2 50 starts at once with one business key: one run, and 49 are answered which it is', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    const starts = Array.from({ length: 50 }, () => holdfast.start(order, { id: 1 }, { key: 'order-1' }))
    const settled = await Promise.allSettled(starts)
    const made = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []))
    const refusals = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as HoldfastError] : []))
    expect(made).toHaveLength(1)
    expect(refusals).toHaveLength(49)
    expect(new Set(refusals.map(({ code, details }) => `${code} ${String(details['runId'])}`))).toEqual(
      new Set([`RUN_EXISTS ${String(made[0])}`]),
    )
  })

  it('HE-U2 a key is unique per workflow, per version, everywhere or not at all, as its scope says', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order, orderTwo, other] })
    const refused = async (workflows: readonly [typeof order | typeof orderTwo | typeof other, StartOptions][]) => {
      const codes: string[] = []
      for (const [definition, options] of workflows) {
        const code = await holdfast.start(definition.type, { id: 1 }, { version: definition.version, ...options }).then(
          () => 'started',
          (error: unknown) => (error as HoldfastError).code,
        )
        codes.push(code)
      }
      return codes
    }
    const workflowScope = { key: 'a' } as const
    expect(
      await refused([
        [order, workflowScope],
        [orderTwo, workflowScope],
        [other, workflowScope],
      ]),
    ).toEqual(['started', 'RUN_EXISTS', 'started'])
    const versionScope = { key: 'b', scope: 'version' } as const
    expect(
      await refused([
        [order, versionScope],
        [orderTwo, versionScope],
        [order, versionScope],
      ]),
    ).toEqual(['started', 'started', 'RUN_EXISTS'])
    const globalScope = { key: 'c', scope: 'global' } as const
    expect(
      await refused([
        [order, globalScope],
        [other, globalScope],
      ]),
    ).toEqual(['started', 'RUN_EXISTS'])
    const noScope = { key: 'd', scope: 'none' } as const
    expect(
      await refused([
        [order, noScope],
        [order, noScope],
      ]),
    ).toEqual(['started', 'started'])
    expect((await holdfast.find({ key: 'd' })).runs).toHaveLength(2)
  })

  it('HE-U2 the end of a run and its removal free its key; an idempotency key outlives the end, not the removal', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    const keys = { key: 'order-1', idempotencyKey: 'request-1' }
    const first = await holdfast.start(order, { id: 1 }, keys)
    await first.cancel()
    const again = await holdfast.start(order, { id: 1 }, keys)
    expect([again.id, again.created]).toEqual([first.id, false])
    const second = await holdfast.start(order, { id: 1 }, { key: 'order-1' })
    expect(second.id).not.toBe(first.id)

    await holdfast.remove(first, { reason: 'a test' })
    await holdfast.remove(second)
    const third = await holdfast.start(order, { id: 1 }, keys)
    expect(third.created).toBe(true)
    expect(await holdfast.get(first)).toMatchObject({ status: 'cancelled', deleteReason: 'a test' })
  })

  it('onConflict: return gives back the live run of a key, also to who has another input, and that run is unharmed', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    const options = { key: 'order-1', onConflict: 'return' } as const
    const first = await holdfast.start(order, { id: 1 }, options)
    const before = await holdfast.journal(first)
    const second = await holdfast.start(order, { id: 2 }, options)
    expect([second.id, second.created, second.key]).toEqual([first.id, false, 'order-1'])
    expect(await holdfast.journal(first)).toEqual(before)
    expect((await errorOf(holdfast.start(order, { id: 2 }, { key: 'order-1' }))).code).toBe('RUN_EXISTS')
    const both = { ...options, idempotencyKey: 'request-1' }
    expect((await holdfast.start(order, { id: 3 }, both)).id).toBe(first.id)
  })

  it.each([
    ['idempotencyKey', { idempotencyKey: 'request-1' }],
    ['id', { id: '01890a5d-ac96-774b-bcce-b302099a8057' }],
  ] satisfies [string, StartOptions][])(
    'PEERS 20 the same %s with another input is a typed conflict, and the first run is unharmed',
    async (_what, options) => {
      const { open } = await make()
      const holdfast = await open({ workflows: [order] })
      const first = await holdfast.start(order, { id: 1 }, options)
      const before = await holdfast.journal(first)
      const error = await errorOf(holdfast.start(order, { id: 2 }, options))
      expect([error.code, error.family, error.details['runId']]).toEqual(['INPUT_CONFLICT', 'conflict', first.id])
      expect(await holdfast.journal(first)).toEqual(before)
      expect((await holdfast.find()).runs).toHaveLength(1)
    },
  )

  it('PEERS 20 an id that is a run of another workflow is a typed conflict', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order, other] })
    const first = await holdfast.start(order, { id: 1 })
    const error = await errorOf(holdfast.start(other, { id: 1 }, { id: first.id }))
    expect([error.code, error.details['runId'], error.details['type']]).toEqual(['RUN_EXISTS', first.id, 'order'])
  })

  it('an input is the same whatever the order of its keys', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [other] })
    const options = { idempotencyKey: 'request-1' }
    const first = await holdfast.start('other', { id: 1, lines: [{ a: 1, b: new Date(0) }] }, options)
    const second = await holdfast.start('other', { lines: [{ b: new Date(0), a: 1 }], id: 1 }, options)
    expect([second.id, second.created]).toEqual([first.id, false])
  })

  it('two workflows may have the same idempotency key', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order, other] })
    await holdfast.start(order, { id: 1 }, { idempotencyKey: 'request-1' })
    expect((await holdfast.start(other, { id: 1 }, { idempotencyKey: 'request-1' })).created).toBe(true)
  })
})

describe('a start that its worker could begin at once', () => {
  it('gives its slot back when the key is taken', async () => {
    const { open, after } = virtualWorld()
    const quick = workflow('quick', (_ctx, n: number) => n)
    const holdfast = await open({ workflows: [order, quick] })
    await holdfast.work({ concurrency: 1 })
    const first = await holdfast.start(order, { id: 1 }, { key: 'a' })
    for (let turn = 0; turn < 5; turn += 1) {
      await errorOf(after(holdfast.start(order, { id: 1 }, { key: 'a' })))
      await after(holdfast.start(order, { id: 2 }, { key: 'a', onConflict: 'return' }))
      await errorOf(after(holdfast.start(order, { id: 2 }, { id: first.id })))
    }
    expect(await after((await holdfast.start(quick, 7)).result())).toBe(7)
  })
})

describe('a workflow whose runs are unique by their input', () => {
  const byField = workflow(
    'by.field',
    { unique: { key: 'orderId' } },
    (_ctx, input: { orderId: string | number }) => input,
  )

  it('HE-U1 HE-A6 makes the key of a field of the input: one live run of each value', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [byField] })
    const run = await holdfast.start(byField, { orderId: 42 })
    expect([run.key, compositeValue(run.key ?? '')]).toEqual(['orderId::42', '42'])
    expect((await errorOf(holdfast.start(byField, { orderId: '42' }))).code).toBe('RUN_EXISTS')
    expect((await holdfast.start(byField, { orderId: '42' }, { onConflict: 'return' })).id).toBe(run.id)
    expect((await holdfast.start(byField, { orderId: 'A-7 b' })).key).toBe('orderId::A-7 b')
  })

  it('finds a run by the value of the field, where the type and its workflow are known, or by the whole key', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [byField] })
    const { id } = await holdfast.start(byField, { orderId: 42 })
    const found = async (filter: Parameters<typeof holdfast.find>[0]): Promise<readonly string[]> =>
      (await holdfast.find(filter)).runs.map((run) => run.id)
    expect(await found({ type: 'by.field', key: '42' })).toEqual([id])
    expect(await found({ type: ['by.field'], key: 'orderId::42' })).toEqual([id])
    expect(await found({ key: 'orderId::42' })).toEqual([id])
    expect((await holdfast.count({ type: 'by.field', key: '42' })).count).toBe(1)
    expect((await holdfast.cancelMany({ type: 'by.field', key: '42' })).matched).toBe(1)
  })

  it('reads what the schema has made of the input, by a function if one is given', async () => {
    const { open } = virtualWorld()
    const input = z.object({ mail: z.string().transform(async (text) => text.toLowerCase()) })
    const byMail = workflow('by.mail', { input, unique: { key: ({ mail }) => `to ${mail}`, scope: 'global' } }, () => 1)
    const holdfast = await open({ workflows: [byMail] })
    const run = await holdfast.start(byMail, { mail: 'Ada@x' })
    expect([run.key, (await holdfast.get(run)).keyScope]).toEqual(['to ada@x', 'global'])
    expect((await errorOf(holdfast.start(byMail, { mail: 'ADA@x' }))).code).toBe('RUN_EXISTS')
  })

  it('refuses an input that has no such key, and names the field', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [byField] })
    for (const orderId of [undefined, null, {}, true, Number.NaN]) {
      const error = await errorOf(holdfast.start('by.field', { orderId }))
      expect([error.code, error.details]).toEqual(['INVALID_INPUT', { field: 'orderId' }])
      expect(error.message).toContain('The field "orderId" of the input of workflow "by.field" must be a string')
    }
    expect((await errorOf(holdfast.start('by.field'))).code).toBe('INVALID_INPUT')
    expect((await errorOf(holdfast.start(byField, { orderId: 'a\n' }))).code).toBe('INVALID_NAME')
  })

  it('takes the same key once more from a start, and refuses another one', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [byField] })
    expect((await holdfast.start(byField, { orderId: '1' }, { key: '1' })).key).toBe('orderId::1')
    expect((await holdfast.start(byField, { orderId: '2' }, { key: 'orderId::2' })).key).toBe('orderId::2')
    const error = await errorOf(holdfast.start(byField, { orderId: '3' }, { key: '4' }))
    expect([error.code, error.message]).toEqual([
      'INVALID_OPTION',
      'The key of a run of "by.field" is read from its input: "orderId::3". The key "4" says something else: leave it out.',
    ])
  })

  it('is so by its own scope: a start cannot switch that off', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [byField] })
    await holdfast.start(byField, { orderId: '1' })
    for (const scope of ['none', 'version', 'global'] as const) {
      const error = await errorOf(holdfast.start(byField, { orderId: '1' }, { scope }))
      expect([error.code, error.details]).toEqual(['INVALID_OPTION', { type: 'by.field', scope, own: 'workflow' }])
    }
    expect((await holdfast.start(byField, { orderId: '2' }, { scope: 'workflow' })).key).toBe('orderId::2')
  })

  it('refuses a value that looks like the key of another run, and a function that fails, with what it said', async () => {
    const { open } = virtualWorld()
    const byFunction = workflow(
      'by.function',
      { unique: { key: (input: { order: { id: string } }) => input.order.id } },
      () => 1,
    )
    const holdfast = await open({ workflows: [byField, byFunction] })
    const forged = await errorOf(holdfast.start(byField, { orderId: 'orderId::7' }))
    expect([forged.code, forged.details]).toEqual(['INVALID_INPUT', { field: 'orderId' }])
    const failed = await errorOf(holdfast.start('by.function', {}))
    expect([failed.code, failed.cause]).toEqual(['INVALID_INPUT', expect.any(TypeError)])
    expect(failed.message).toMatch(/^unique\.key of workflow "by\.function" failed for this input/)
  })

  it('goes on under its key only: continuing with the input of another run is refused, and nothing is lost', async () => {
    const { open, after } = virtualWorld()
    const again = workflow(
      'again',
      { unique: { key: 'orderId' } },
      async (ctx, input: { orderId: number; round: number }) => {
        if (input.round === 0) return ctx.continueAsNew({ ...input, round: 1 })
        return ctx
          .continueAsNew({ orderId: input.orderId + 1, round: 0 })
          .catch((error: unknown) => (error as HoldfastError).code)
      },
    )
    const stranger = workflow('stranger', (ctx) => ctx.continueAs(again, { orderId: 9, round: 0 }))
    const holdfast = await open({ workflows: [again, stranger] })
    await holdfast.work()
    expect(await after((await holdfast.start(again, { orderId: 1, round: 0 })).result())).toBe('INVALID_INPUT')
    expect((await errorOf(after((await holdfast.start(stranger)).result()))).message).toContain(
      'Start another run for that.',
    )
  })
})
