// Projections from end to end: what reaches a read model, where, and how often.

import { describe, expect, it } from 'vitest'
import { memoryProjection, projection, subscription, type Holdfast } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { counterOf, OwnTables } from './read-model.ts'
import { sqlStores } from './sql-stores.ts'

const manual = { auto: false } as const

async function add(holdfast: Holdfast, id: string, by: number): Promise<void> {
  await holdfast.executeDynamic('counter', { type: 'Add', id, by })
}

describe.each(sqlStores)('a projection with transactions on $name', ({ make }) => {
  it('IF-O6 IF-O7 writes the read model and its position in one transaction, each event once and in order', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const running = await holdfast.project(tables.projection(counter), manual)
    for (let round = 1; round <= 4; round += 1) {
      await add(holdfast, 'a', round)
      await add(holdfast, 'b', 10 * round)
    }
    expect((await running.lag()).events).toBeGreaterThan(8)
    expect(await running.tick()).toBeGreaterThan(8)
    expect(await tables.sums()).toEqual({ a: 10, b: 100 })
    expect((await tables.instances()).join('')).toBe('abababab')
    expect(await running.lag()).toEqual({ events: 0, seconds: 0 })
    expect(await running.tick()).toBe(0)
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('IF-S2 keeps its position when the process is gone, and another one goes on with it', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const first = await open({ workflows: [counter] })
    const running = await first.project(tables.projection(counter), manual)
    await add(first, 'a', 1)
    await running.tick()
    await first.close()
    const second = await open({ workflows: [counter] })
    await add(second, 'a', 2)
    const next = await second.project(tables.projection(counter), manual)
    expect(await next.tick()).toBe(2)
    expect(await tables.sums()).toEqual({ a: 3 })
    expect(await second.projections.list()).toMatchObject([{ name: 'sums', status: 'active', isHeld: true }])
  })

  it('IF-C5 is moved on by one process at a time, and by another one as soon as the first gives it up', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const [one, other] = [await open({ workflows: [counter] }), await open({ workflows: [counter] })]
    const leading = await one.project(tables.projection(counter), manual)
    const standing = await other.project(tables.projection(counter), manual)
    await add(one, 'a', 1)
    expect(await leading.tick()).toBe(3)
    await add(one, 'a', 2)
    expect(await standing.tick()).toBeNull()
    await leading.stop()
    expect(await leading.ended).toBeNull()
    expect(await standing.tick()).toBe(2)
    expect(await tables.sums()).toEqual({ a: 3 })
  })

  it('goes on by itself, and execute() waits for it', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const sums = tables.projection(counter)
    await holdfast.project(sums)
    for (let by = 1; by <= 5; by += 1) {
      await holdfast.execute(counter, { type: 'Add', id: 'a', by }, { waitFor: sums })
      expect(await tables.sums()).toEqual({ a: (by * (by + 1)) / 2 })
    }
  })

  it('waits for one that another process moves on, and says when that takes too long', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const [one, other] = [await open({ workflows: [counter] }), await open({ workflows: [counter] })]
    const sums = tables.projection(counter)
    const running = await other.project(sums)
    await one.execute(counter, { type: 'Add', id: 'a', by: 5 }, { waitFor: 'sums' })
    expect(await tables.sums()).toEqual({ a: 5 })
    await running.pause()
    const late = one.execute(counter, { type: 'Add', id: 'a', by: 2 }, { waitFor: sums, timeout: 300 })
    await expect(late).rejects.toMatchObject({ code: 'PROJECTION_BEHIND', details: { status: 'paused' } })
    expect(await one.state(counter, 'a')).toBe(7)
    await running.resume()
    await until('the event is projected', async () => (await tables.sums())['a'] === 7)
    const unknown = one.execute(counter, { type: 'Add', id: 'a', by: 2 }, { waitFor: 'others' })
    await expect(unknown).rejects.toMatchObject({ code: 'PROJECTION_UNKNOWN', details: { known: ['sums'] } })
  })

  it('begins at the end if its options say so', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    await add(holdfast, 'a', 1)
    await store.changes(0, 1)
    const running = await holdfast.project(tables.projection(counter, { startAt: 'end' }), manual)
    await running.tick()
    await add(holdfast, 'a', 2)
    await running.tick()
    expect(await tables.sums()).toEqual({ a: 2 })
  })

  it('is refused where the store knows another definition of its name, with what differs', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const [one, other] = [await open({ workflows: [counter] }), await open({ workflows: [counter] })]
    await (await one.project(tables.projection(counter), manual)).tick()
    const changed = other.project(tables.projection(counter, { version: 2 }), manual)
    await expect(changed).rejects.toMatchObject({ code: 'PROJECTION_CONFLICT' })
    await expect(changed).rejects.toThrow('version is 2 here and 1 in the store')
    await expect(changed).rejects.toThrow('holdfast.projections.rebuild')
    const twice = one.project(tables.projection(counter), manual)
    await expect(twice).rejects.toMatchObject({ code: 'PROJECTION_CONFLICT' })
  })
})

describe.each(everyStore)('consumers elsewhere on $name', ({ make }) => {
  it('IF-O6 IF-O7 a subscription gets each event with an id, its place, its instance and its time', async () => {
    const { open } = await make()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    await add(holdfast, 'a', 4)
    await add(holdfast, 'a', 6)
    const seen: unknown[] = []
    const followed = subscription('followed', {
      from: counter,
      handle: (event, { id, instance, decider, version, seq, position, at }) => {
        seen.push([event, instance, decider, version, position > 0, at instanceof Date, id.endsWith(`:${seq}`)])
      },
    })
    const running = await holdfast.project(followed, manual)
    await running.tick()
    const about = ['a', 'counter', 1, true, true, true]
    expect(seen).toEqual([
      [{ type: 'Added', by: 4 }, ...about],
      [{ type: 'Added', by: 6 }, ...about],
      [{ type: 'Rounded' }, ...about],
    ])
    await running.tick()
    expect(seen).toHaveLength(3)
  })

  it('IF-O6 three of them see the same global order, and one that is raw over types sees those of all', async () => {
    const { open } = await make()
    const [apples, pears] = [counterOf('apples'), counterOf('pears')]
    const holdfast = await open({ workflows: [apples, pears] })
    await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        holdfast.execute(index % 2 === 0 ? apples : pears, { type: 'Add', id: `${index % 5}`, by: 1 }),
      ),
    )
    const orders = await Promise.all(
      ['one', 'two', 'three'].map(async (name) => {
        const order: string[] = []
        const from = ['apples', 'pears'] as const
        const followed = subscription(name, { from, handle: (_event, { id }) => void order.push(id) })
        await (await holdfast.project(followed, manual)).tick()
        return order
      }),
    )
    expect(orders[0]).toHaveLength(24)
    expect(new Set(orders[0]).size).toBe(24)
    expect(orders[1]).toEqual(orders[0])
    expect(orders[2]).toEqual(orders[0])
  })

  it('a read model in memory is the fold of all events, in each process that projects it', async () => {
    const { open } = await make()
    const counter = counterOf()
    const sums = memoryProjection('sums', {
      from: counter,
      init: () => new Map<string, number>(),
      handlers: { Added: (model, { by }, { instance }) => void model.set(instance, (model.get(instance) ?? 0) + by) },
    })
    const [one, other] = [await open({ workflows: [counter] }), await open({ workflows: [counter] })]
    await add(one, 'a', 1)
    const [here, there] = [await one.project(sums), await other.project(sums)]
    await one.execute(counter, { type: 'Add', id: 'b', by: 2 }, { waitFor: sums })
    expect([...here.model]).toEqual([
      ['a', 1],
      ['b', 2],
    ])
    await until('the other process has it, too', () => there.model.get('b') === 2)
    expect([...there.model]).toEqual([...here.model])
    await here.pause()
    await add(one, 'a', 5)
    expect(await here.tick()).toBeNull()
    expect((await here.lag()).events).toBe(2)
    await here.resume()
    await until('it goes on', () => here.model.get('a') === 6)
  })

  it('ten of them in one process read the feed once', async () => {
    const { open, store } = await make()
    const counter = counterOf()
    let reads = 0
    const holdfast = await open({ workflows: [counter] })
    for (let round = 0; round < 30; round += 1) await add(holdfast, `${round % 3}`, 1)
    await store.changes(0, 1_000)
    const counted = new Proxy(store, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key)
        if (typeof member !== 'function') return member
        if (key === 'changes') reads += 1
        return member.bind(target) as unknown
      },
    })
    const { createHoldfast } = await import('holdfast')
    const reader = await createHoldfast({ store: counted, workflows: [counter] })
    const seen = new Map<number, number>()
    for (let nth = 0; nth < 10; nth += 1) {
      const handle = (): void => void seen.set(nth, (seen.get(nth) ?? 0) + 1)
      await (await reader.project(subscription(`n${nth}`, { from: counter, handle }), manual)).tick()
    }
    expect([...seen.values()]).toEqual(Array.from({ length: 10 }, () => 33))
    // A page, and the end behind it for each tick.
    expect(reads).toBeLessThanOrEqual(12)
    await reader.close()
  })
})

describe('what is refused', () => {
  it('at definition: no name, no handler, both, a source that is none, and options of another kind', () => {
    const counter = counterOf()
    const handle = (): void => undefined
    expect(() => projection('', { from: counter, handle })).toThrow('name of a projection')
    expect(() => projection('x', { from: counter } as never)).toThrow('either handlers')
    expect(() => projection('x', { from: counter, handle, handlers: {} } as never)).toThrow('either handlers')
    expect(() => projection('x', { from: counter, handlers: {} })).toThrow('handlers of projection "x"')
    expect(() => projection('x', { from: [], handle })).toThrow('a decider, the type of one')
    expect(() => projection('x', { from: 5, handle } as never)).toThrow('a decider, the type of one')
    expect(() => projection('x', { from: counter, handle, init: handle } as never)).toThrow('memoryProjection()')
    expect(() => subscription('x', { from: counter, handle, rebuild: {} } as never)).toThrow('Only projection()')
    expect(() => projection('x', { from: counter, handle, rebuild: { begin: handle } } as never)).toThrow(
      'rebuild.swap',
    )
    expect(() => projection('x', { from: counter, handlers: { Added: 5 } } as never)).toThrow('handlers.Added')
    expect(() => projection('x', { from: counter, handle, batch: 0 })).toThrow('whole number')
    expect(() => memoryProjection('x', { from: counter, handle } as never)).toThrow('init')
  })

  it('transactions on a store that has none, and what is no projection', async () => {
    const { open } = await (everyStore[0] as (typeof everyStore)[number]).make()
    const holdfast = await open({ workflows: [counterOf()] })
    const refused = holdfast.project(projection('sums', { from: 'counter', handle: () => undefined }))
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.project({} as never)).rejects.toThrow('A projection is what')
    await expect(holdfast.projections.pause('sums')).rejects.toMatchObject({ code: 'PROJECTION_UNKNOWN' })
  })
})
