// The small database under the read-committed store does what Postgres does at READ COMMITTED. Each case is two or three
// transactions whose statements come in one fixed order.

import { describe, expect, it } from 'vitest'
import { Database } from '../../read-committed/database/database.ts'
import { createReadCommittedStore } from '../../read-committed/store.ts'
import { Table } from '../../read-committed/database/table.ts'
import { createVirtualClock } from '../../../src/testing/index.ts'
import { createContractBench } from '../../../src/testing/contract/index.ts'
import { Interleaver } from '../../support/interleaver.ts'

interface Item {
  readonly id: string
  readonly key: string | null
  readonly count: number
}

async function setUp(...ids: readonly string[]) {
  const db = new Database()
  const items = new Table<Item>('items', [
    { name: 'id', unique: true, key: ({ id }) => id },
    { name: 'key', unique: true, key: ({ key }) => key },
  ])
  for (const id of ids) db.seed(items, { id, key: `key of ${id}`, count: 0 })
  const at = (...keys: readonly string[]) => ({ at: ['id', keys] }) as const
  const read = () => db.begin('reader').select(items, { order: (a, b) => (a.id < b.id ? -1 : 1) })
  return { db, items, at, read, a: db.begin('a'), b: db.begin('b') }
}

const plusOne = (item: Item): Item => ({ ...item, count: item.count + 1 })

/** What a statement has come to, once everything has happened that needs no other. */
async function now<Answer>(statement: Promise<Answer>): Promise<Answer | 'waits'> {
  const turn = new Promise<'waits'>((resolve) => setImmediate(() => resolve('waits')))
  return Promise.race([statement, turn])
}

describe('a statement', () => {
  it('sees what its own transaction did, and of others what was committed when it began', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.update(items, at('x'), plusOne)
    expect([a.select(items, at('x'))[0]?.count, b.select(items, at('x'))[0]?.count]).toEqual([1, 0])
    a.commit()
    expect(b.select(items, at('x'))[0]?.count).toBe(1)
  })

  it('that rolls back leaves nothing', async () => {
    const { items, a, at, read } = await setUp('x')
    await a.update(items, at('x'), plusOne)
    await a.insert(items, [{ id: 'y', key: null, count: 1 }])
    a.rollBack()
    expect(read()).toEqual([{ id: 'x', key: 'key of x', count: 0 }])
  })

  it('that waited for a row takes its newest version, so that no update is lost', async () => {
    const { items, a, b, at, read } = await setUp('x')
    await a.update(items, at('x'), plusOne)
    const second = b.update(items, at('x'), plusOne)
    expect(await now(second)).toBe('waits')
    a.commit()
    expect(await second).toEqual([{ id: 'x', key: 'key of x', count: 2 }])
    b.commit()
    expect(read()[0]?.count).toBe(2)
  })

  it('that waited for a row leaves it alone if it fits no more', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.update(items, at('x'), plusOne)
    const second = b.update(items, { ...at('x'), where: ({ count }) => count === 0 }, plusOne)
    a.commit()
    expect(await second).toEqual([])
  })

  it('does not see a row that fits only since it began', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.update(items, at('x'), plusOne)
    expect(await now(b.update(items, { ...at('x'), where: ({ count }) => count === 1 }, plusOne))).toEqual([])
  })

  // Why one clever statement loses wake-ups: the row is judged anew, what stands beside it is not.
  it('that waited judges other rows as they were before', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.lock(items, at('x'))
    const alone = b.lock(items, { ...at('x'), where: (_, seen) => seen.select(items, at('y')).length === 0 })
    await a.insert(items, [{ id: 'y', key: null, count: 0 }])
    await a.update(items, at('x'), plusOne)
    a.commit()
    expect(await alone).toHaveLength(1)
    expect(b.select(items, at('y')), 'the next statement sees it').toHaveLength(1)
  })

  it('that deletes a row takes it away once it is committed, and makes room for another one of its key', async () => {
    const { items, a, b, at, read } = await setUp('x')
    const seen = b.view()
    await a.delete(items, at('x'))
    expect([a.select(items, at('x')), b.select(items, at('x')).length]).toEqual([[], 1])
    await a.insert(items, [{ id: 'x', key: null, count: 9 }])
    a.commit()
    expect(read()).toEqual([{ id: 'x', key: null, count: 9 }])
    expect(seen.select(items, at('x'))[0]?.count, 'who looked before sees what was there').toBe(0)
  })

  it('that deletes a row and rolls back leaves it, and the transaction that waited for it changes it', async () => {
    const { items, a, b, at, read } = await setUp('x')
    await a.delete(items, at('x'))
    const second = b.update(items, at('x'), plusOne)
    expect(await now(second)).toBe('waits')
    a.rollBack()
    expect(await second).toHaveLength(1)
    b.commit()
    expect(read()[0]?.count).toBe(1)
  })

  it('that waited for a row which was deleted finds nothing', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.delete(items, at('x'))
    const second = b.lock(items, at('x'))
    a.commit()
    expect(await second).toEqual([])
  })

  it('passes over locked rows with SKIP LOCKED', async () => {
    const { items, a, b, at } = await setUp('x', 'y')
    await a.lock(items, at('x'))
    const rows = await b.lock(items, {}, { skipLocked: true })
    expect(rows.map(({ id }) => id)).toEqual(['y'])
  })
})

describe('a unique index', () => {
  it('makes an insert wait for the rival, and lets it in if that rolls back', async () => {
    const { items, a, b } = await setUp()
    const row = (id: string): Item => ({ id, key: 'k', count: 0 })
    await a.insertNew(items, [row('x')])
    const second = b.insertNew(items, [row('y')])
    expect(await now(second)).toBe('waits')
    a.rollBack()
    expect(await second).toEqual([row('y')])
  })

  it('keeps an insert out because of a row that its statement cannot see', async () => {
    const { items, a, b } = await setUp()
    await a.insert(items, [{ id: 'x', key: 'k', count: 0 }])
    const second = b.insertNew(items, [{ id: 'y', key: 'k', count: 0 }])
    a.commit()
    expect(await second).toEqual([])
  })

  it('lets a key in whose row is being deleted, once that is committed', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.delete(items, at('x'))
    const second = b.insertNew(items, [{ id: 'x', key: null, count: 1 }])
    expect(await now(second)).toBe('waits')
    a.commit()
    expect(await second).toHaveLength(1)
  })

  it('lets a key in that is being given up, once that is committed', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.update(items, at('x'), (item) => ({ ...item, key: null }))
    const second = b.insertNew(items, [{ id: 'y', key: 'key of x', count: 0 }])
    expect(await now(second)).toBe('waits')
    a.commit()
    expect(await second).toHaveLength(1)
  })

  it('does not wait for a row that is only locked', async () => {
    const { items, a, b, at } = await setUp('x')
    await a.lock(items, at('x'))
    expect(await now(b.insertNew(items, [{ id: 'y', key: 'key of x', count: 0 }]))).toEqual([])
  })

  it('refuses an update that would take a key twice', async () => {
    const { items, a, at } = await setUp('x', 'y')
    const twice = a.update(items, at('y'), (item) => ({ ...item, key: 'key of x' }))
    await expect(twice).rejects.toMatchObject({ state: '23505' })
  })

  it('lets two that open one row at once both come through', async () => {
    const { items, a, b, read } = await setUp()
    const fresh: Item = { id: 'x', key: null, count: 1 }
    await a.upsert(items, fresh, plusOne)
    const second = b.upsert(items, fresh, plusOne)
    expect(await now(second)).toBe('waits')
    a.commit()
    await second
    b.commit()
    expect(read()).toEqual([{ id: 'x', key: null, count: 2 }])
  })
})

describe('liveness', () => {
  it('two that wait for each other are found: one is refused, and the other goes on when it has rolled back', async () => {
    const { items, a, b, at } = await setUp('x', 'y')
    await a.lock(items, at('x'))
    await b.lock(items, at('y'))
    const first = a.lock(items, at('y'))
    expect(await now(first)).toBe('waits')
    await expect(b.lock(items, at('x'))).rejects.toMatchObject({ state: '40P01' })
    b.rollBack()
    expect(await first).toHaveLength(1)
  })

  it('calls that come to a standstill fail, and say who waits for whom', async () => {
    const clock = createVirtualClock()
    const interleaver = new Interleaver(1)
    const schedule = (name: string): Promise<void> =>
      name === 'control.commit' ? new Promise(() => undefined) : interleaver.schedule(name)
    const store = createReadCommittedStore({ clock, schedule })
    const { start, control, deliver, message } = createContractBench({ store, clock })
    const { id } = await start()
    const calls = [control(id, { kind: 'pause', reason: 'operator', note: null }), deliver(message(id))] as const
    const settled = interleaver.settle(calls, () => store.waits())
    await expect(settled).rejects.toThrow(/Nothing goes on: .*control.commit/)
  })
})
