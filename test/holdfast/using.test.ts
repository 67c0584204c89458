// `holdfast.using(tx)`: what is done in a user's own transaction takes effect if and only if that commits.

import { describe, expect, it } from 'vitest'
import { topic, workflow } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import { settled, until } from './gate.ts'
import { open } from './open.ts'
import { insertOrder, ownTables } from './own-tables.ts'

const double = workflow('double', (_ctx, n: number) => n * 2)
const news = topic<string>('news')

const patient = workflow('patient', async (ctx) => {
  await ctx.sleep('1 h')
})

describe('a run that is started in a transaction', () => {
  it('exists once that is committed, is performed, and was not begun before', async () => {
    const { db, open, orders } = await ownTables()
    const holdfast = await open({ workflows: [double] })
    await holdfast.work()
    db.exec('begin immediate')
    insertOrder(db, 'a')
    const run = await holdfast.using(db).start(double, 21, { key: 'order-a', tags: ['new'] })
    expect(run.created).toBe(true)
    expect(run.key).toBe('order-a')
    await settled()
    db.exec('commit')
    expect(await run.result()).toBe(42)
    expect(orders()).toEqual(['a'])
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('never existed if that is rolled back', async () => {
    const { db, open, orders } = await ownTables()
    const holdfast = await open({ workflows: [double] })
    await holdfast.work()
    db.exec('begin immediate')
    insertOrder(db, 'a')
    const run = await holdfast.using(db).start(double, 21, { key: 'order-a' })
    db.exec('rollback')
    await expect(run.status()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
    expect(orders()).toEqual([])
    expect(await holdfast.find()).toMatchObject({ runs: [] })
    expect(await (await holdfast.start(double, 1, { key: 'order-a' })).result()).toBe(2)
  })

  it('is refused as outside, and the transaction stays usable', async () => {
    const { db, open, orders } = await ownTables()
    const holdfast = await open({ workflows: [double, patient] })
    await holdfast.start(patient, undefined, { key: 'taken' })
    db.exec('begin immediate')
    const using = holdfast.using(db)
    await expect(using.start(patient, undefined, { key: 'taken' })).rejects.toMatchObject({ code: 'RUN_EXISTS' })
    await expect(using.start('unknown')).rejects.toMatchObject({ code: 'WORKFLOW_UNKNOWN' })
    await expect(using.start(double, 1, { priority: 0.5 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const first = await using.start(double, 1, { idempotencyKey: 'once' })
    const again = await using.start(double, 1, { idempotencyKey: 'once' })
    expect(again).toMatchObject({ id: first.id, created: false })
    await expect(using.start(double, 2, { idempotencyKey: 'once' })).rejects.toMatchObject({ code: 'INPUT_CONFLICT' })
    insertOrder(db, 'b')
    db.exec('commit')
    expect(orders()).toEqual(['b'])
    expect(await first.status()).toBe('pending')
  })

  it('may be seen by no other call of this process before the commit, and holds none of them up for good', async () => {
    const { db, open } = await ownTables()
    const holdfast = await open({ workflows: [double] })
    await holdfast.work()
    db.exec('begin immediate')
    insertOrder(db, 'a')
    const inside = await holdfast.using(db).start(double, 1)
    const outside = Promise.all([1, 2, 3].map(async (n) => (await holdfast.start(double, n)).result()))
    const seen = holdfast.find()
    await new Promise((resolve) => setTimeout(resolve, 200))
    db.exec('rollback')
    expect(await outside).toEqual([2, 4, 6])
    expect((await seen).runs.map(({ id }) => id)).not.toContain(inside.id)
    expect(await holdfast.count()).toMatchObject({ count: 3 })
  })
})

describe('a message and a cancellation in a transaction', () => {
  it('arrive with the commit, each message once', async () => {
    const { db, store, open } = await ownTables()
    const holdfast = await open({ workflows: [patient] })
    await holdfast.work()
    const run = await holdfast.start(patient)
    await until(async () => (await run.status()) === 'waiting')
    db.exec('begin immediate')
    const using = holdfast.using(db)
    // It waits for something else.
    const queued = { outcome: 'queued', runId: run.id, signalId: 'm-1' }
    expect(await using.signal(run, 'paid', { amount: 3 }, { id: 'm-1' })).toEqual(queued)
    expect(await using.signal(run.id, 'paid', { amount: 3 }, { id: 'm-1' })).toEqual({ ...queued, repeated: true })
    expect(await using.signal('01900000-0000-7000-8000-000000000000', 'x')).toEqual({ outcome: 'target-not-found' })
    await expect(using.signal(run, '')).rejects.toMatchObject({ code: 'INVALID_NAME' })
    db.exec('commit')
    const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 0 }])
    expect(loaded?.messages).toMatchObject([{ id: 'm-1', name: 'paid', data: '{"amount":3}' }])
  })

  it('leave nothing behind a rollback', async () => {
    const { db, store, open } = await ownTables()
    const holdfast = await open({ workflows: [patient] })
    const run = await holdfast.start(patient)
    db.exec('begin immediate')
    const using = holdfast.using(db)
    const queued = { outcome: 'queued', runId: run.id, signalId: 's-1' }
    expect(await using.signal(run, 'paid', undefined, { id: 's-1' })).toEqual(queued)
    expect(await using.broadcast(news, 'hello', { id: 'b-1' })).toEqual({ outcome: 'queued', signalId: 'b-1' })
    expect(await using.cancel(run, { reason: 'no longer needed' })).toMatchObject({ outcome: 'cancelled' })
    db.exec('rollback')
    expect(await run.status()).toBe('pending')
    const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 0 }])
    expect(loaded?.messages).toEqual([])
    // A topic that knew its id would say so.
    expect(await holdfast.broadcast(news, 'hello', { id: 'b-1' })).toEqual({ outcome: 'queued', signalId: 'b-1' })
  })

  it('cancel a run that waits, at the commit', async () => {
    const { db, open } = await ownTables()
    const holdfast = await open({ workflows: [patient] })
    await holdfast.work()
    const run = await holdfast.start(patient)
    await until(async () => (await run.status()) === 'waiting')
    db.exec('begin immediate')
    expect(await holdfast.using(db).cancel(run, { reason: 'enough' })).toMatchObject({ outcome: 'cancelled' })
    await expect(holdfast.using(db).cancel('01900000-0000-7000-8000-000000000000')).rejects.toMatchObject({
      code: 'RUN_NOT_FOUND',
    })
    db.exec('commit')
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_CANCELLED' })
  })
})

describe('holdfast.using', () => {
  it('says what it needs', async () => {
    const { db, path, open: openHere } = await ownTables()
    const holdfast = await openHere({ workflows: [double] })
    const refused = (tx: unknown): void =>
      expect(() => holdfast.using(tx)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    refused(undefined)
    refused({ query: () => undefined })
    refused(path)
    expect(() => holdfast.using(holdfast)).toThrow('Got a Holdfast')
    expect(() => holdfast.using(db)).toThrow('begin immediate')
    const elsewhere = await ownTables()
    elsewhere.db.exec('begin')
    expect(() => holdfast.using(elsewhere.db)).toThrow('the same file')
    elsewhere.db.exec('rollback')
    const memory = await open()
    expect(() => memory.using(db)).toThrow('The memory store has no transactions')
  })

  it('refuses to write after the transaction is over', async () => {
    const { db, open } = await ownTables()
    const holdfast = await open({ workflows: [double] })
    db.exec('begin immediate')
    const using = holdfast.using(db)
    db.exec('commit')
    await expect(using.start(double, 1)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await holdfast.count()).toMatchObject({ count: 0 })
  })

  it('works on the very connection that the store was given', async () => {
    const { connect } = await ownTables()
    const handle = connect()
    const store = await openSqliteStore({ handle })
    const holdfast = await open({ store, workflows: [double] })
    await holdfast.work()
    handle.exec('begin immediate')
    insertOrder(handle, 'a')
    const kept = await holdfast.using(handle).start(double, 4)
    const other = holdfast.start(double, 5)
    await settled()
    handle.exec('commit')
    expect(await kept.result()).toBe(8)
    expect(await (await other).result()).toBe(10)
  })
})
