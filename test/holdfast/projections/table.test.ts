// A read model that is a table of one row for each instance, on SQLite and on Postgres.

import { describe, expect, it } from 'vitest'
import { decider, decision, projection, tableProjection, type Store } from 'holdfast'
import { everyStore } from '../stores.ts'
import { inOwn, run, type Row } from './read-model.ts'
import { sqlStores } from './sql-stores.ts'

const manual = { auto: false } as const

type Event =
  | { readonly type: 'Placed'; readonly customer: string; readonly total: number }
  | { readonly type: 'Added'; readonly total: number }
  | { readonly type: 'Paid' | 'Noted' | 'Dropped' }
type Input =
  | { readonly type: 'Place'; readonly id: string; readonly customer: string; readonly total: number }
  | { readonly type: 'Add'; readonly id: string; readonly total: number }
  | { readonly type: 'Pay' | 'Note' | 'Drop'; readonly id: string }

const order = decider('order', {
  initial: () => 0,
  evolve: (count, _event: Event) => count + 1,
  decide: (_count, input: Input) => {
    if (input.type === 'Place') return decision<Event>({ type: 'Placed', customer: input.customer, total: input.total })
    if (input.type === 'Add') return decision<Event>({ type: 'Added', total: input.total })
    const types = { Pay: 'Paid', Note: 'Noted', Drop: 'Dropped' } as const
    return decision<Event>({ type: types[input.type] })
  },
  id: 'id',
})

/** Names that need their quotes. */
const odd = 'or"ders; drop'
const columns = { 'cust"omer': 'text', items: 'integer', total: 'number', isPaid: 'boolean' } as const

function ordersOf(store: Store, { version = 1, cents = 1 } = {}) {
  const { namespace = '' } = store.capabilities
  return tableProjection('orders', {
    from: order,
    version,
    table: odd,
    ...(namespace === '' ? {} : { schema: namespace }),
    columns,
    handlers: {
      Placed: (_row, { customer, total }) => ({ 'cust"omer': customer, items: 1, total: total * cents, isPaid: false }),
      Added: ({ items, total }, event) => ({ items: (items ?? 0) + 1, total: (total ?? 0) + event.total * cents }),
      Paid: () => ({ isPaid: true }),
      Noted: () => undefined,
      Dropped: () => null,
    },
  })
}

async function rowsOf(store: Store, suffix = ''): Promise<readonly Row[]> {
  const { namespace = '' } = store.capabilities
  const table = `"or""ders; drop${suffix}"`
  const target = namespace === '' ? table : `"${namespace}".${table}`
  return (await inOwn(store, (tx) => run(tx, `select * from ${target} order by id`))).map((row) => ({
    ...row,
    items: row['items'] === null ? null : Number(row['items']),
    position: Number(row['position']),
    isPaid: row['isPaid'] === null ? null : Boolean(row['isPaid']),
    at: new Date(row['at'] as string).toISOString(),
  }))
}

const create = (store: Store, orders: { readonly createTable: string }) =>
  inOwn(store, (tx) => run(tx, orders.createTable))

describe.each(sqlStores)('a table of one row for each instance on $name', ({ make }) => {
  it('IF-O7 has the columns that the events left, with the position and the time of the last that changed them', async () => {
    const { open, store } = await make()
    const orders = ordersOf(store)
    await create(store, orders)
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, { type: 'Place', id: "a'", customer: 'Åsa "B"', total: 1.5 })
    await holdfast.execute(order, { type: 'Add', id: "a'", total: 2 })
    await holdfast.execute(order, { type: 'Place', id: 'b', customer: 'Bo', total: 4 })
    await holdfast.execute(order, { type: 'Place', id: 'c', customer: 'Cy', total: 9 })
    await holdfast.execute(order, { type: 'Drop', id: 'c' })
    await holdfast.execute(order, { type: 'Note', id: 'd' })
    const running = await holdfast.project(orders, manual)
    await running.tick()
    const [a] = await rowsOf(store)
    await holdfast.execute(order, { type: 'Note', id: "a'" })
    await holdfast.execute(order, { type: 'Pay', id: 'b' })
    await holdfast.execute(order, { type: 'Pay', id: 'e' })
    await running.tick()
    const rows = await rowsOf(store)
    expect(rows).toMatchObject([
      { id: "a'", 'cust"omer': 'Åsa "B"', items: 2, total: 3.5, isPaid: false },
      { id: 'b', 'cust"omer': 'Bo', items: 1, total: 4, isPaid: true },
      { id: 'e', 'cust"omer': null, items: null, total: null, isPaid: true },
    ])
    expect(rows[0]).toEqual(a)
    const added = (await holdfast.history(order, "a'")).find(({ event }) => event.type === 'Added')
    expect(a?.['at']).toBe(added?.at.toISOString())
    const feed = await store.changes(0, 1_000)
    const places = feed.flatMap(({ position, entry }) => (entry.kind === 'event' ? [position] : []))
    expect(rows.map(({ position }) => position)).toEqual([places[1], places.at(-2), places.at(-1)])
  })

  it('writes the rows in the transaction of the position, whatever the size of a batch', async () => {
    const { open, store } = await make()
    const orders = ordersOf(store)
    await create(store, orders)
    const holdfast = await open({ workflows: [order] })
    for (let nth = 0; nth < 6; nth += 1) {
      await holdfast.execute(order, { type: 'Place', id: `${nth % 3}`, customer: 'x', total: 1 })
      await holdfast.execute(order, { type: 'Add', id: `${nth % 3}`, total: nth })
    }
    let failures = 1
    const failing = {
      ...orders,
      batch: 5,
      batched: {
        begin: (...given: Parameters<NonNullable<typeof orders.batched>['begin']>) =>
          orders.batched?.begin(...given) ?? Promise.resolve(),
        end: async (...given: Parameters<NonNullable<typeof orders.batched>['end']>) => {
          await orders.batched?.end(...given)
          failures -= 1
          if (failures === 0) throw new Error('after the rows, before the position')
        },
      },
    }
    await (await holdfast.project(failing, manual)).tick()
    expect(failures).toBeLessThan(0)
    // Had the rows of the failed batch stayed, `items` of an order would count its first events twice.
    expect((await rowsOf(store)).map(({ items, total }) => [items, total])).toEqual([
      [2, 4],
      [2, 5],
      [2, 6],
    ])
  })

  it('IF-O6 is built anew in a table of its own, again and again', async () => {
    const { open, store } = await make()
    const first = ordersOf(store)
    await create(store, first)
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, { type: 'Place', id: 'a', customer: 'x', total: 1 })
    const old = await holdfast.project(first, manual)
    await old.tick()
    await old.stop()
    const other = await open({ workflows: [order] })
    for (const version of [2, 3]) {
      const next = ordersOf(store, { version, cents: 10 ** version })
      await expect(other.project(next, manual)).rejects.toThrow(`version is ${version} here`)
      await other.projections.rebuild(next)
      const running = await other.project(next, manual)
      await running.tick()
      expect((await rowsOf(store))[0]).toMatchObject({ id: 'a', items: 1, total: 10 ** version })
      expect((await other.projections.list())[0]).toMatchObject({ rebuild: null, failure: null })
      await expect(rowsOf(store, '_next')).rejects.toThrow('drop_next')
      await other.execute(order, { type: 'Add', id: 'b', total: 1 })
      await running.tick()
      expect((await rowsOf(store)).map(({ id }) => id)).toEqual(['a', 'b'])
      await running.stop()
    }
  })

  it('is parked at an event whose handler returns what the table cannot hold, and without its table', async () => {
    const { open, store } = await make()
    const orders = ordersOf(store)
    const holdfast = await open({ workflows: [order] })
    const running = await holdfast.project({ ...orders, maxAttempts: 1 }, manual)
    await holdfast.execute(order, { type: 'Place', id: 'a', customer: 'x', total: 1 })
    await running.tick()
    const failure = async () => (await holdfast.projections.list())[0]?.failure
    expect((await failure())?.error).toContain('A table of the read model of "orders" is missing')
    await create(store, orders)
    await holdfast.execute(order, { type: 'Place', id: 'b', customer: 5 as never, total: 1 })
    await running.resume()
    await running.tick()
    expect((await failure())?.instance).toBe('b')
    expect((await failure())?.error).toContain('is of type text, and cannot hold 5')
    expect(await rowsOf(store)).toMatchObject([{ id: 'a' }])
  })
})

describe('what a table projection refuses', () => {
  const made = (options: object) => () =>
    tableProjection('orders', { from: order, table: 'orders', columns: {}, handle: () => null, ...options })

  it('names that a database would cut off or mix up, other types, and the events of two deciders', async () => {
    expect(made({})).not.toThrow()
    expect(made({ table: '' })).toThrow('table of tableProjection "orders" must be a name of 1 to 58 bytes')
    expect(made({ table: 'é'.repeat(30) })).toThrow('1 to 58 bytes')
    expect(made({ schema: 'a\0' })).toThrow('without NUL')
    expect(made({ columns: null })).toThrow('must be an object such as')
    expect(made({ columns: { status: 'varchar' } })).toThrow("'text', 'integer', 'number' or 'boolean'")
    expect(made({ columns: { status: 'toString' } })).toThrow("'text', 'integer', 'number' or 'boolean'")
    expect(made({ columns: { At: 'text' } })).toThrow("than 'id', 'position' and 'at'")
    expect(made({ columns: { a: 'text', A: 'text' } })).toThrow('other than that of another one')
    expect(made({ from: ['order', 'parcel'] })).toThrow('one decider, in any of its versions')
    expect(made({ handlers: { Paid: () => null } })).toThrow('either handlers')
    expect(made({ handle: undefined, handlers: { Paid: 5 } })).toThrow('handlers.Paid of tableProjection')
    expect(made({ colums: {} })).toThrow('columns')
  })

  it('another table or other columns under the same name, until it is built anew, and a store without transactions', async () => {
    const base = { from: order, table: 'orders', columns: {}, handle: () => null } as const
    const texts = [
      projection('orders', { from: order, handle: () => null }),
      tableProjection('orders', base),
      tableProjection('orders', { ...base, table: 'others' }),
      tableProjection('orders', { ...base, columns: { status: 'text' } }),
    ].map(({ definition }) => definition)
    expect(new Set(texts).size).toBe(4)
    const { open } = await (everyStore[0] as (typeof everyStore)[number]).make()
    const holdfast = await open({ workflows: [order] })
    await expect(holdfast.project(tableProjection('orders', base))).rejects.toThrow('has no transactions')
  })
})
