// A read model is built anew beside the live one, and takes its place in one transaction.

import { describe, expect, it } from 'vitest'
import type { Holdfast } from 'holdfast'
import { until } from '../../support/until.ts'
import { counterOf, OwnTables } from './read-model.ts'
import { sqlStores } from './sql-stores.ts'

const manual = { auto: false } as const

async function add(holdfast: Holdfast, id: string, by = 1): Promise<void> {
  await holdfast.executeDynamic('counter', { type: 'Add', id, by })
}

describe.each(sqlStores)('a rebuild on $name', ({ make }) => {
  it('IF-O6 goes from the first event to the last while the live one goes on, and loses nothing that came meanwhile', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    const sums = tables.rebuilt(counter)
    const running = await holdfast.project(sums)
    for (let round = 0; round < 20; round += 1) await add(holdfast, `${round % 4}`)
    await holdfast.execute(counter, { type: 'Add', id: '0', by: 1 }, { waitFor: sums })
    const rebuilt = holdfast.projections.rebuild(sums)
    for (let round = 0; round < 20; round += 1) await add(holdfast, `${round % 4}`)
    await rebuilt
    await until('the rebuild is live', async () => (await holdfast.projections.list())[0]?.rebuild === null)
    await holdfast.execute(counter, { type: 'Add', id: '0', by: 1 }, { waitFor: sums })
    expect(await tables.sums()).toEqual({ 0: 12, 1: 10, 2: 10, 3: 10 })
    expect(await tables.instances()).toHaveLength(42)
    expect((await running.lag()).events).toBe(0)
  })

  it('goes on where it was when its process is gone, and lets a new definition in', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const one = await open({ workflows: [counter] })
    const old = await one.project(tables.rebuilt(counter), manual)
    for (let round = 0; round < 6; round += 1) await add(one, 'a')
    await old.tick()
    const other = await open({ workflows: [counter] })
    const next = tables.rebuilt(counter, { version: 2, batch: 2 })
    await expect(other.project(next, manual)).rejects.toMatchObject({ code: 'PROJECTION_CONFLICT' })
    await other.projections.rebuild(next)
    const rows = (): ReturnType<typeof other.projections.list> => other.projections.list()
    expect((await rows())[0]?.rebuild).toMatchObject({ position: 0, status: 'active' })
    // In a process that gets no further than the fourth event, and then dies.
    const dying = await open({ workflows: [counter] })
    let left = 4
    const handler = next.handlerOf('Added')
    const failing = {
      ...next,
      maxAttempts: 1,
      handlerOf: () => (event: unknown, tools: unknown) => {
        if ((left -= 1) < 0) throw new Error('it ends here')
        return handler?.(event, tools)
      },
    }
    await (await dying.project(failing, manual)).tick()
    await dying.close()
    const [stopped] = await rows()
    expect(stopped?.rebuild).toMatchObject({ status: 'parked', failure: { error: 'it ends here' } })
    expect(stopped?.rebuild?.position).toBeGreaterThan(0)
    await add(one, 'a')
    await old.tick()
    await other.projections.resume('sums')
    // An event that came a second time would be an error of the primary key.
    const standing = await other.project(next, manual)
    await standing.tick()
    expect((await rows())[0]).toMatchObject({ rebuild: null, failure: null })
    expect(await tables.sums()).toEqual({ a: 7 })
    await add(one, 'a')
    // Its lease is void: what it writes is rolled back, and then it learns why.
    expect(await old.tick()).toBeNull()
    await expect(old.tick()).rejects.toMatchObject({ code: 'PROJECTION_CONFLICT' })
    await standing.tick()
    expect(await tables.sums()).toEqual({ a: 8 })
    expect((await other.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('is refused for a projection that does not say how, and may be given up', async () => {
    const { open, store } = await make()
    const tables = new OwnTables(store)
    await tables.create()
    const counter = counterOf()
    const holdfast = await open({ workflows: [counter] })
    await (await holdfast.project(tables.projection(counter), manual)).tick()
    const refused = holdfast.projections.rebuild(tables.projection(counter))
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await holdfast.projections.rebuild('sums')
    expect((await holdfast.projections.list())[0]?.rebuild).not.toBeNull()
    await holdfast.projections.abandonRebuild('sums')
    expect((await holdfast.projections.list())[0]?.rebuild).toBeNull()
    await holdfast.projections.remove('sums')
    expect(await holdfast.projections.list()).toEqual([])
  })
})
