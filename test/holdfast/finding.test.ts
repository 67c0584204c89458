// Looking for runs, by every filter and page by page; and doing the same to all that match.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { workflow, type Filter, type HoldfastError, type RunHandle } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { everyStore } from './stores.ts'
import { changed, virtualWorld } from './virtual-world.ts'

const bill = workflow('billing.charge', { tags: ['money'], metadata: { team: 'payments' } }, (_ctx, n: number) => n)
const refund = workflow('billing.refund', (_ctx, n: number) => n)
const ship = workflow('shipping', { version: 2 }, (_ctx, n: number) => n)
const odd = workflow('billing_odd', (_ctx, n: number) => n)

describe.each(everyStore)('find on the $name store', ({ make }) => {
  it('HE-S1 SW-O3 gives what matches every filter that is given, newest first', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [bill, refund, ship, odd] })
    const runs: RunHandle<unknown>[] = [
      await holdfast.start(bill, 1, { key: 'order-1', tags: ['eu', 'vip'], metadata: { cart: 7 } }),
      await holdfast.start(refund, 2, { idempotencyKey: 'request-2', tags: ['eu'] }),
      await holdfast.start(ship, 3),
      await holdfast.start(odd, 4),
    ]
    const [first, second, third, fourth] = runs as [
      RunHandle<unknown>,
      RunHandle<unknown>,
      RunHandle<unknown>,
      RunHandle<unknown>,
    ]
    await holdfast.start(odd, 5, { parent: first })
    await third.cancel()
    const numbers = async (filter: Filter): Promise<readonly number[]> => {
      const { runs: found } = await holdfast.find(filter)
      expect(await holdfast.count(filter)).toEqual({ count: found.length, isCapped: false })
      return found.map(({ id }) => runs.findIndex((run) => run.id === id) + 1)
    }
    expect(await numbers({})).toEqual([0, 4, 3, 2, 1])
    expect(await numbers({ ids: [first, fourth.id] })).toEqual([4, 1])
    expect(await numbers({ type: 'billing.refund' })).toEqual([2])
    expect(await numbers({ type: ['billing.refund', 'shipping'] })).toEqual([3, 2])
    expect(await numbers({ typePrefix: 'billing.' })).toEqual([2, 1])
    expect(await numbers({ typePrefix: 'billing_' })).toEqual([0, 4])
    expect(await numbers({ typePrefix: '%' })).toEqual([])
    expect(await numbers({ status: 'cancelled' })).toEqual([3])
    expect(await numbers({ status: ['pending', 'cancelled'], version: 2 })).toEqual([3])
    expect(await numbers({ status: [] })).toEqual([])
    expect(await numbers({ key: 'order-1' })).toEqual([1])
    expect(await numbers({ idempotencyKey: 'request-2' })).toEqual([2])
    expect(await numbers({ tag: 'eu' })).toEqual([2, 1])
    expect(await numbers({ tag: 'eu', type: 'billing.charge' })).toEqual([1])
    expect(await numbers({ version: 2 })).toEqual([3])
    expect(await numbers({ parent: first })).toEqual([0])
    expect(await numbers({ createdFrom: new Date(0), createdBefore: new Date(Date.now() + 60_000) })).toHaveLength(5)
    expect(await numbers({ createdBefore: new Date(1) })).toEqual([])

    const view = await holdfast.get(first)
    expect(view).toMatchObject({
      tags: ['money', 'eu', 'vip'],
      metadata: { team: 'payments', cart: 7 },
      key: 'order-1',
    })
    await holdfast.remove(second, { reason: 'wrong customer' })
    expect(await numbers({ tag: 'eu' })).toEqual([1])
    expect(await numbers({ deleted: true })).toEqual([2])
  })

  it('SW-O3 goes through all of them by pages that neither overlap nor leave anything out', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [refund] })
    const started = await Promise.all(Array.from({ length: 120 }, (_, n) => holdfast.start(refund, n)))
    expect((await holdfast.find()).runs).toHaveLength(50)
    const seen: string[] = []
    let pages = 0
    for (let after: string | null = ''; after !== null; pages += 1) {
      const page: Awaited<ReturnType<typeof holdfast.find>> = await holdfast.find({
        type: 'billing.refund',
        limit: 40,
        ...(after === '' ? {} : { after }),
      })
      seen.push(...page.runs.map(({ id }) => id))
      after = page.next
    }
    expect(pages).toBe(3)
    expect(seen).toEqual(
      started
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    )
    expect(await holdfast.count({}, { atMost: 100 })).toEqual({ count: 100, isCapped: true })
  })

  it('cancels or retries all that match, after a preview that changes nothing', async () => {
    const { open } = await make()
    const failing = workflow('failing', { retry: { maxAttempts: 1 } }, (_ctx, fails: boolean) => {
      if (fails) throw new Error('no')
    })
    const holdfast = await open({ workflows: [refund, failing] })
    for (let n = 0; n < 7; n += 1) await holdfast.start(refund, n, { tags: n < 5 ? ['old'] : [] })
    const filter = { tag: 'old', type: 'billing.refund' }
    expect(await holdfast.cancelMany(filter, { preview: true })).toEqual({
      matched: 5,
      isCapped: false,
      changed: 0,
      skipped: 0,
      first: (await holdfast.find(filter)).runs,
    })
    expect((await holdfast.count({ status: 'cancelled' })).count).toBe(0)
    expect(await holdfast.cancelMany(filter, { reason: 'spring cleaning' })).toMatchObject({ matched: 5, changed: 5 })
    expect(await holdfast.cancelMany(filter)).toMatchObject({ matched: 0, changed: 0 })
    expect((await holdfast.count({ status: 'pending' })).count).toBe(2)

    await holdfast.work()
    const run = await holdfast.start(failing, true)
    await run.result().catch(() => undefined)
    expect((await holdfast.find({ status: 'failed' })).runs[0]?.lastError).toBe('Error: no')
    expect(await holdfast.retryMany({ type: 'failing' }, { preview: true })).toMatchObject({ matched: 1, changed: 0 })
    expect(await holdfast.retryMany({ type: 'failing' }, { note: 'again' })).toMatchObject({ matched: 1, changed: 1 })
    await run.result().catch(() => undefined)
    expect((await holdfast.journal(run)).filter(({ kind }) => kind === 'failed')).toHaveLength(2)
  })

  it('cancelMany({}), and a filter whose members are all undefined, touch no run unless the call says { all: true }', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [refund] })
    for (let n = 0; n < 3; n += 1) await holdfast.start(refund, n)
    const tenant = (undefined as string | undefined)!
    const empty: readonly Filter[] = [{}, { tag: tenant, key: tenant }, { deleted: true }, { deleted: false }]
    for (const filter of empty) {
      for (const bulk of ['cancelMany', 'retryMany', 'resumeMany', 'pauseMany', 'removeMany'] as const) {
        for (const options of [{}, { preview: true }, { all: false }]) {
          await expect(holdfast[bulk](filter, options)).rejects.toMatchObject({
            code: 'INVALID_OPTION',
            message: `${bulk}(): an empty filter matches every run. Say { all: true } in the second argument if that is meant.`,
          })
        }
      }
    }
    for (const all of [1, 'yes', null]) {
      await expect(holdfast.cancelMany({}, { all: all as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    }
    await expect(holdfast.cancelMany(undefined as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    // Both at once is a contradiction: one of the two was not meant.
    await expect(holdfast.cancelMany({ tag: 'old' }, { all: true })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    // A list without members was computed, and names nothing.
    for (const filter of [{ ids: [] }, { type: [] }, { status: [] }]) {
      expect(await holdfast.cancelMany(filter)).toMatchObject({ matched: 0, changed: 0 })
    }
    expect((await holdfast.count({ status: 'pending' })).count).toBe(3)
    expect(await holdfast.cancelMany({}, { all: true })).toMatchObject({ matched: 3, changed: 3 })
  })

  it('lets paused runs go on, all that match or those with one reason', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [refund] })
    for (let n = 0; n < 3; n += 1) {
      const run = await holdfast.start(refund, n)
      await holdfast.pause(run, { reason: n === 0 ? 'maintenance' : 'operator' })
    }
    await holdfast.start(refund, 3)
    const crashes = { reason: 'crashes' } as const
    expect(await holdfast.resumeMany({ type: 'billing.refund' }, crashes)).toMatchObject({ matched: 0, changed: 0 })
    const maintenance = { reason: 'maintenance', note: 'done' } as const
    expect(await holdfast.resumeMany({}, { ...maintenance, all: true, preview: true })).toEqual({
      matched: 1,
      isCapped: false,
      changed: 0,
      skipped: 0,
      first: [expect.objectContaining({ status: 'paused' })],
    })
    expect(await holdfast.resumeMany({}, { ...maintenance, all: true })).toMatchObject({
      matched: 1,
      changed: 1,
      skipped: 0,
    })
    expect(await holdfast.resumeMany({ status: ['paused', 'pending'] })).toMatchObject({ matched: 2, changed: 2 })
    expect((await holdfast.count({ status: 'pending' })).count).toBe(4)
  })

  it('pauses all that match and can be paused, and a preview shows the first ten and pauses none', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [refund] })
    for (let n = 0; n < 250; n += 1) await holdfast.start(refund, n, { tags: ['old'] })
    await holdfast.cancel((await holdfast.find({ limit: 1 })).runs[0]!)
    const newest = (await holdfast.find({ status: 'pending', limit: 10 })).runs.map(({ id }) => id)
    const preview = await holdfast.pauseMany({ tag: 'old' }, { preview: true })
    expect(preview).toMatchObject({ matched: 249, isCapped: false, changed: 0, skipped: 0 })
    expect(preview.first?.map(({ id }) => id)).toEqual(newest)
    expect((await holdfast.count({ status: 'paused' })).count).toBe(0)
    const asked = { reason: 'maintenance', note: 'the bank is away' } as const
    const done = await holdfast.pauseMany({ tag: 'old' }, asked)
    expect(done).toEqual({ matched: 249, isCapped: false, changed: 249, skipped: 0 })
    expect((await holdfast.find({ status: 'paused', limit: 1 })).runs[0]?.pause).toMatchObject(asked)
    // What is paused or over already does not match.
    expect(await holdfast.pauseMany({ tag: 'old' })).toMatchObject({ matched: 0, changed: 0 })
    expect(await holdfast.pauseMany({ status: ['paused', 'cancelled'] })).toMatchObject({ matched: 0, changed: 0 })
    await expect(holdfast.pauseMany({ tag: 'old' }, { reason: 'crashes' as never })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    expect(await holdfast.resumeMany({ tag: 'old' }, { reason: 'maintenance' })).toMatchObject({ changed: 249 })
  })

  it('removes all that match, page by page, and refuses to look among what is removed', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [refund] })
    for (let n = 0; n < 210; n += 1) await holdfast.start(refund, n, { key: `k${n}`, tags: n < 205 ? ['old'] : [] })
    const preview = await holdfast.removeMany({ tag: 'old' }, { preview: true })
    expect([preview.matched, preview.first?.length]).toEqual([205, 10])
    expect((await holdfast.count()).count).toBe(210)
    await expect(holdfast.removeMany({ tag: 'old', deleted: true })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const done = await holdfast.removeMany({ tag: 'old' }, { reason: 'a test' })
    expect(done).toEqual({ matched: 205, isCapped: false, changed: 205, skipped: 0 })
    expect((await holdfast.count()).count).toBe(5)
    expect((await holdfast.find({ deleted: true, limit: 1 })).runs[0]).toMatchObject({ deleteReason: 'a test' })
    // Its key is free.
    expect((await holdfast.start(refund, 0, { key: 'k0' })).created).toBe(true)
  })
})

describe('a filter that no run could match by mistake', () => {
  it.each([
    [{ status: 'runing' }, 'There is no status "runing". Did you mean "running"?'],
    [{ typ: 'a' }, 'has no option "typ"'],
    [{ limit: 0 }, 'from 1 to 200'],
    [{ limit: 201 }, 'from 1 to 200'],
    [{ after: 'x' }, 'of another page'],
    [{ createdFrom: new Date('never') }, 'valid Date'],
    [{ tag: '' }, 'must be a text'],
    [{ version: 1.5 }, 'whole number'],
  ] as const)('%j is refused', async (filter, expected) => {
    const { open } = virtualWorld()
    const holdfast = await open()
    const error = (await holdfast.find(filter as Filter).catch((reason: unknown) => reason)) as HoldfastError
    expect(error.code).toBe('INVALID_OPTION')
    expect(error.message).toContain(expected)
  })
})

describe('a removed run', () => {
  it.each(['before', 'while'])(
    'does not keep anybody waiting for its result who asked %s it was removed',
    async (when) => {
      const { open, after } = virtualWorld()
      const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('100 days')))
      const patient = workflow('patient', (ctx, id: string) =>
        ctx.waitFor(id).then(
          () => 'ended',
          (error: unknown) => (error as HoldfastError).code,
        ),
      )
      const holdfast = await open({ workflows: [sleeper, patient] })
      const elsewhere = await open({ workflows: [sleeper] })
      await holdfast.work()
      const run = await holdfast.start(sleeper)
      const waiting = await holdfast.start(patient, run.id)
      const results = () =>
        [run.result(), elsewhere.run(run).result()].map((one) => one.catch((error: unknown) => error))
      const asked = when === 'while' ? results() : []
      await holdfast.remove(run, { reason: 'wrong customer' })
      for (const result of when === 'while' ? asked : results()) {
        expect(await after(result)).toMatchObject({
          code: 'RUN_NOT_FOUND',
          message: expect.stringContaining('was removed (wrong customer) before it ended') as string,
          details: { runId: run.id, reason: 'wrong customer' },
        })
      }
      // As runs that wait for it are notified.
      expect(await after(waiting.result())).toBe('RUN_NOT_FOUND')
      expect(await run.status()).not.toBe('succeeded')
    },
  )

  it('that had ended still has its result', async () => {
    const { open, after } = virtualWorld()
    const quick = workflow('quick', () => 7)
    const holdfast = await open({ workflows: [quick] })
    await holdfast.work()
    const run = await holdfast.start(quick)
    expect(await after(run.result())).toBe(7)
    await holdfast.remove(run)
    expect(await after(run.result())).toBe(7)
  })

  it('SW-P1 is never leased again, keeps its status, and may be ended by its holder', async () => {
    const { open, clock, after, until } = virtualWorld()
    let begun = 0
    const counted = workflow('counted', () => (begun += 1))
    const holdfast = await open({ workflows: [counted] })
    const run = await holdfast.start(counted)
    await holdfast.remove(run)
    await holdfast.remove(run)
    await holdfast.work()
    await clock.advance('1h')
    expect([begun, await run.status()]).toEqual([0, 'pending'])

    let letGo = (): void => undefined
    const held = workflow('held', (ctx) => ctx.step('held', () => new Promise<void>((resolve) => (letGo = resolve))))
    const other = await open({ workflows: [held] })
    await other.work()
    const moving = await other.start(held)
    await until(() => letGo.length === 1)
    await other.remove(moving, { reason: 'gone' })
    letGo()
    await after(moving.result())
    expect(await other.get(moving)).toMatchObject({ status: 'succeeded', deleteReason: 'gone' })
  })
})

describe('notes that are encrypted for their places', () => {
  it('stand in every run that is paused together, also in those that move on between the look and the request', async () => {
    const { open, store } = virtualWorld()
    const codec = encryptingCodec({ keys: { a: randomBytes(32) }, current: 'a' })
    const helper = await open({ workflows: [refund], codec })
    let moves = 1
    const moving = changed(store, {
      control: async (requests) => {
        moves -= 1
        for (const { runId } of moves === 0 ? requests : []) {
          await helper.pause(runId)
          await helper.resume(runId)
        }
        return store.control(requests)
      },
    })
    const holdfast = await open({ store: moving, workflows: [refund], codec })
    for (let n = 0; n < 3; n += 1) await holdfast.start(refund, n)
    expect(await holdfast.pauseMany({}, { all: true, note: 'secret' })).toMatchObject({ matched: 3, changed: 3 })
    expect(moves).toBeLessThan(0)
    for (const { pause } of (await holdfast.find()).runs) expect(pause).toMatchObject({ note: 'secret' })
  })
})
