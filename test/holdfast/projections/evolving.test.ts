// Events that other code has written, as projections get them: upcast, renamed, retired, erased, or not readable at all.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { decider, decision, memoryProjection, projection, subscription } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { everyStore, type SharedStore } from '../stores.ts'
import { sqlStores } from './sql-stores.ts'

const manual = { auto: false } as const

type Charge = { readonly type: 'Charge'; readonly id: string; readonly cents: number }
type Old = { readonly type: 'Charged'; readonly cents: number } | { readonly type: 'Noted' }
type Paid = { readonly type: 'Paid'; readonly amount: number }

/** What it writes is `Charged`, in cents, with a note. */
const oldTill = decider('till', {
  initial: () => 0,
  evolve: (total, event: Old) => (event.type === 'Charged' ? total + event.cents : total),
  decide: (_total, { cents }: Charge) => decision<Old>({ type: 'Charged', cents }, { type: 'Noted' }),
  id: 'id',
})

/** The same decider years later. */
function newTill(version = 1) {
  return decider('till', {
    version,
    initial: () => 0,
    evolve: (total, event: Paid) => total + event.amount,
    decide: (_total, { cents }: Charge) => decision<Paid>({ type: 'Paid', amount: cents / 100 }),
    id: 'id',
    upcast: {
      Paid: {
        1: (old: { readonly type: 'Paid'; readonly cents: number }): Paid => {
          if (old.cents < 0) throw new Error('a negative amount')
          return { type: 'Paid', amount: old.cents / 100 }
        },
      },
    },
    renamed: { Charged: 'Paid' },
    retired: ['Noted'],
  })
}

const charge = (id: string, cents: number): Charge => ({ type: 'Charge', id, cents })

/** A store on which the old code has decided these amounts, each for an instance of its own. */
async function written(make: () => Promise<SharedStore>, cents: readonly number[]): Promise<SharedStore> {
  const shared = await make()
  const holdfast = await shared.open({ workflows: [oldTill] })
  for (const [nth, one] of cents.entries()) await holdfast.execute(oldTill, charge(`${nth}`, one))
  await holdfast.close()
  return shared
}

describe.each(everyStore)('events of other code on $name', ({ make }) => {
  it('IF-V2 IF-O7 come to a subscription and to a model in memory as the present code reads them, beside new ones', async () => {
    const { open } = await written(make, [500, 200])
    const till = newTill()
    const holdfast = await open({ workflows: [till] })
    await holdfast.execute(till, charge('2', 300))
    const seen: unknown[] = []
    const followed = subscription('followed', { from: till, handle: (event) => void seen.push(event) })
    const sum = memoryProjection('sum', {
      from: till,
      init: () => 0,
      handlers: { Paid: (total, { amount }) => total + amount },
    })
    await (await holdfast.project(followed, manual)).tick()
    expect(seen).toEqual([5, 2, 3].map((amount) => ({ type: 'Paid', amount })))
    const running = await holdfast.project(sum, manual)
    await running.tick()
    expect(running.model).toBe(10)
  })

  it('IF-V2 by a type alone come as the registered decider reads them, and as they were written where there is none', async () => {
    const { open } = await written(make, [500])
    const collect = async (workflows: Parameters<typeof open>[0] & object): Promise<readonly unknown[]> => {
      const holdfast = await open(workflows)
      const seen: unknown[] = []
      const raw = memoryProjection('raw', {
        from: 'till',
        init: () => seen,
        handle: (list, event) => void list.push(event),
      })
      await (await holdfast.project(raw, manual)).tick()
      return seen
    }
    expect(await collect({})).toEqual([{ type: 'Charged', cents: 500 }, { type: 'Noted' }])
    expect(await collect({ workflows: [newTill()] })).toEqual([{ type: 'Paid', amount: 5 }])
    // The instance is of version 1, which is not here.
    expect(await collect({ workflows: [newTill(2), newTill(3)] })).toEqual([{ type: 'Paid', amount: 5 }])
  })

  it('IF-V2 are read by the deciders that the projection names, each instance by its own version', async () => {
    const { open } = await written(make, [500])
    const [second, third] = [newTill(2), newTill(3)]
    // The old code is registered, and yet the handlers of the others know nothing of its events.
    const holdfast = await open({ workflows: [oldTill, second, third] })
    await holdfast.execute(third, charge('1', 100))
    const events = async (name: string, from: Parameters<typeof memoryProjection>[1]['from']) => {
      const all = memoryProjection(name, {
        from,
        init: () => [] as unknown[],
        handle: (list, event) => [...list, event],
      })
      const running = await holdfast.project(all, manual)
      await running.tick()
      return running.model
    }
    const read = [5, 1].map((amount) => ({ type: 'Paid', amount }))
    expect(await events('new', third)).toEqual(read)
    expect(await events('new ones', [second, third])).toEqual(read)
    expect(await events('both', [oldTill, third])).toEqual([
      { type: 'Charged', cents: 500 },
      { type: 'Noted' },
      { type: 'Paid', amount: 1 },
    ])
  })

  it('IF-O7 park a projection that cannot read one, which is shown, and what came before is kept', async () => {
    const { open } = await written(make, [500, -1, 200])
    const till = newTill()
    const holdfast = await open({ workflows: [till] })
    const seen: number[] = []
    const handlers = { Paid: ({ amount }: Paid) => void seen.push(amount) }
    const followed = subscription('followed', { from: till, maxAttempts: 1, handlers })
    const running = await holdfast.project(followed, manual)
    await running.tick()
    expect(seen).toEqual([5])
    const [view] = await holdfast.projections.list()
    expect(view).toMatchObject({ status: 'parked', failure: { type: 'Charged', of: 'till', instance: '1' } })
    expect(view?.failure?.error).toContain('of instance "1" of decider "till", cannot be folded')
    expect(view?.failure?.error).toContain('a negative amount')
    await running.skip()
    await running.tick()
    expect(seen).toEqual([5, 2])
  })

  it('IF-V2 pass over what is erased, by a decider and by a type alone', async () => {
    const { open } = await make()
    let keys = new Map(['0', '1'].map((id) => [id, randomBytes(32)]))
    const forSubject = (id: string): Uint8Array | null => keys.get(id) ?? null
    const of = (value: unknown): string | null => (value as { subject?: string } | null)?.subject ?? null
    const codec = encryptingCodec({
      keys: { a: Buffer.alloc(32, 1) },
      current: 'a',
      subjects: { of, keys: { forSubject } },
    })
    const person = decider('person', {
      initial: () => 0,
      evolve: (count, _event: { readonly type: 'Named' | 'Seen'; readonly subject?: string }) => count + 1,
      decide: (_count, { id }: { readonly type: 'Name'; readonly id: string }) =>
        decision({ type: 'Named', subject: id }, { type: 'Seen' }),
      id: 'id',
      onErased: (count) => count + 1,
    })
    const holdfast = await open({ workflows: [person], codec })
    for (const id of ['0', '1']) await holdfast.execute(person, { type: 'Name', id })
    keys = new Map([...keys].filter(([id]) => id !== '0'))
    const reader = await open({ codec })
    for (const [holder, from] of [
      [holdfast, person],
      [reader, 'person'],
    ] as const) {
      const seen: unknown[] = []
      const raw = memoryProjection('raw', {
        from,
        init: () => seen,
        handle: (list, event, { instance }) => void list.push([instance, event.type]),
      })
      await (await holder.project(raw, manual)).tick()
      expect(seen).toEqual([
        ['0', 'Seen'],
        ['1', 'Named'],
        ['1', 'Seen'],
      ])
    }
  })
})

describe.each(sqlStores)('events of other code in a transaction on $name', ({ make }) => {
  it('IF-V2 IF-O7 come as the present code reads them, until one that cannot be read', async () => {
    const { open } = await written(make, [500, 200, -1, 100])
    const till = newTill()
    const holdfast = await open({ workflows: [till] })
    const seen: number[] = []
    const paid = projection('paid', {
      from: till,
      maxAttempts: 2,
      handlers: { Paid: ({ amount }) => void seen.push(amount) },
    })
    const running = await holdfast.project(paid, manual)
    await running.tick()
    expect(seen).toEqual([5, 2])
    expect(await holdfast.projections.list()).toMatchObject([
      { status: 'parked', failure: { instance: '2', type: 'Charged', attempts: 2 } },
    ])
    await running.skip()
    await running.tick()
    expect(seen).toEqual([5, 2, 1])
    expect((await running.lag()).events).toBe(0)
  })
})
