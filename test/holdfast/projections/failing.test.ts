// Events that a handler fails for: what came before is kept, the event is tried again, and then the projection is parked with it.

import { describe, expect, it } from 'vitest'
import { memoryProjection, subscription, type Holdfast } from 'holdfast'
import { everyStore } from '../stores.ts'
import { counterOf, inOwn, OwnTables, run } from './read-model.ts'
import { sqlStores } from './sql-stores.ts'

const manual = { auto: false } as const

async function addAll(holdfast: Holdfast, ids: readonly string[]): Promise<void> {
  for (const id of ids) await holdfast.executeDynamic('counter', { type: 'Add', id, by: 1 })
}

describe.each(sqlStores)('a projection with transactions on $name', ({ make }) => {
  it('IF-O7 keeps what came before a failing event, is parked at it, and goes on when that is repaired', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    let broken = true
    const calls: string[] = []
    const sums = {
      ...tables.projection(counter, { maxAttempts: 2 }),
      handlerOf: () => async (event: unknown, tools: unknown) => {
        const { instance, tx } = tools as { readonly instance: string; readonly tx: unknown }
        calls.push(instance)
        await tables.write(tx, event as never, tools as never)
        if (broken && instance === 'c') throw new Error('no sum of c')
      },
    }
    const running = await holdfast.project(sums, manual)
    await addAll(holdfast, ['a', 'b', 'c', 'd'])
    await running.tick()
    // The batch, those before the event, and the event by itself until it is given up.
    expect(calls.join('')).toBe('abcabc')
    expect(await tables.sums()).toEqual({ a: 1, b: 1 })
    const [view] = await holdfast.projections.list()
    expect(view).toMatchObject({
      status: 'parked',
      isHeld: false,
      failure: { type: 'Added', of: 'counter', instance: 'c', attempts: 2, error: 'no sum of c' },
    })
    expect(view?.lag.events).toBeGreaterThan(2)
    expect(await running.tick()).toBeNull()
    broken = false
    await running.resume()
    await running.tick()
    expect(await tables.sums()).toEqual({ a: 1, b: 1, c: 1, d: 1 })
    expect((await tables.instances()).join('')).toBe('abcd')
  })

  it('skips an event only if an operator says so, and remembers it', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const sums = tables.projection(counter, { maxAttempts: 1 })
    const handler = sums.handlerOf('Added')
    const failing = {
      ...sums,
      handlerOf: () => (event: unknown, tools: unknown) => {
        if ((tools as { readonly instance: string }).instance === 'b') throw new Error('no b')
        return handler?.(event, tools)
      },
    }
    const running = await holdfast.project(failing, manual)
    await addAll(holdfast, ['a', 'b', 'c'])
    await running.tick()
    const [parked] = await holdfast.projections.list()
    const position = parked?.failure?.position ?? 0
    await expect(holdfast.projections.skip('sums', position + 1)).rejects.toMatchObject({ code: 'WRONG_STATUS' })
    await holdfast.projections.skip('sums', position)
    await expect(running.skip()).rejects.toMatchObject({ code: 'WRONG_STATUS' })
    await running.tick()
    expect(await tables.sums()).toEqual({ a: 1, c: 1 })
    expect(await holdfast.projections.list()).toMatchObject([
      { status: 'active', failure: null, skipped: [{ position, instance: 'b', error: 'no b' }] },
    ])
  })

  it('says of a read model whose table is gone what to do', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const running = await holdfast.project(tables.projection(counter, { maxAttempts: 1 }), manual)
    await addAll(holdfast, ['a'])
    await running.tick()
    await inOwn(store, (tx) => tables.drop(tx))
    await addAll(holdfast, ['b'])
    await running.tick()
    const [view] = await holdfast.projections.list()
    expect(view?.failure?.error).toContain('A table of the read model of "sums" is missing')
    expect(view?.failure?.error).toContain('own_events')
    await tables.create()
    await running.resume()
    await running.tick()
    expect(await tables.sums()).toEqual({ b: 1 })
  })

  it('counts nothing of an event whose handler has ended the transaction', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const sums = tables.projection(counter, { maxAttempts: 1, batch: 1 })
    const handler = sums.handlerOf('Added')
    const ending = {
      ...sums,
      handlerOf: () => async (event: unknown, tools: unknown) => {
        const { instance, tx } = tools as { readonly instance: string; readonly tx: unknown }
        await handler?.(event, tools)
        if (instance === 'b') await run(tx, 'rollback')
      },
    }
    const running = await holdfast.project(ending, manual)
    await addAll(holdfast, ['a', 'b', 'c'])
    await running.tick()
    expect(await tables.sums()).toEqual({ a: 1 })
    expect(await holdfast.projections.list()).toMatchObject([{ status: 'parked', failure: { instance: 'b' } }])
  })
})

describe.each(everyStore)('a subscription on $name', ({ make }) => {
  it('IF-O6 commits what came before a failing event, so that only that one comes again', async () => {
    const { open } = await make()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const seen: string[] = []
    let failures = 1
    const followed = subscription('followed', {
      from: counter,
      handle: (_event, { instance }) => {
        seen.push(instance)
        if (instance === 'c' && failures > 0) {
          failures -= 1
          throw new Error('not now')
        }
      },
    })
    const running = await holdfast.project(followed, manual)
    await addAll(holdfast, ['a', 'b', 'c', 'd'])
    await running.tick()
    expect(seen.join('')).toBe('abccd')
    expect((await running.lag()).events).toBe(0)
  })
})

describe.each(everyStore)('a read model in memory on $name', ({ make }) => {
  it('is parked at the event that it fails for, and others go on', async () => {
    const { open } = await make()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const failing = memoryProjection('failing', {
      from: counter,
      init: () => [] as string[],
      handle: (list, _event, { instance }) => {
        if (instance === 'b') throw new Error('no b')
        return [...list, instance]
      },
    })
    const running = await holdfast.project(failing, manual)
    await addAll(holdfast, ['a', 'b', 'c'])
    await running.tick()
    expect(running.model).toEqual(['a'])
    expect(await running.tick()).toBeNull()
    await running.skip()
    await running.tick()
    expect(running.model).toEqual(['a', 'c'])
    await expect(running.skip()).rejects.toMatchObject({ code: 'WRONG_STATUS' })
  })
})
