// A projection gets events as the code of its decider reads them: under their present names and of the present form, without
// those that are retired, and of an erased one what is left. On every store.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { decider, decision, memoryProjection, subscription, type Holdfast } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { everyStore } from '../stores.ts'

const manual = { auto: false } as const

interface In {
  readonly type: 'Charge'
  readonly id: string
  readonly euros: number
}

const older = decider('till', {
  initial: () => 0,
  evolve: (total, event: { type: 'Charged'; cents: number } | { type: 'Noted' }) =>
    event.type === 'Charged' ? total + event.cents : total,
  decide: (_total, { euros }: In) => decision({ type: 'Charged', cents: 100 * euros }, { type: 'Noted' }),
  id: 'id',
})

interface Paid {
  readonly type: 'Paid'
  readonly amount: number
}

const till = decider('till', {
  initial: () => 0,
  evolve: (total, event: Paid) => total + event.amount,
  decide: (_total, { euros }: In) => decision({ type: 'Paid', amount: euros }),
  id: 'id',
  renamed: { Charged: 'Paid' },
  retired: ['Noted'],
  upcast: { Paid: { 1: (old: { type: 'Paid'; cents: number }): Paid => ({ type: 'Paid', amount: old.cents / 100 }) } },
})

const charge = (euros: number) => ({ type: 'Charge', id: 'a', euros }) as const

describe.each(everyStore)('the events of a projection on $name', ({ make }) => {
  async function written() {
    const world = await make()
    const before = await world.open({ workflows: [older] })
    await before.execute(older, charge(5))
    await before.close()
    const holdfast = await world.open({ workflows: [till] })
    await holdfast.execute(till, charge(7))
    return { ...world, holdfast }
  }

  async function seenBy(holdfast: Holdfast, from: typeof till | 'till'): Promise<readonly unknown[]> {
    const all = memoryProjection(`all of ${typeof from}`, {
      from,
      init: (): unknown[] => [],
      handle: (seen, event) => void seen.push(event),
    })
    const running = await holdfast.project(all, manual)
    await running.tick()
    return running.model
  }

  const present = [
    { type: 'Paid', amount: 5 },
    { type: 'Paid', amount: 7 },
  ]

  it('IF-V2 have the present name and form, and those that are retired do not come', async () => {
    const { holdfast } = await written()
    expect(await holdfast.events(till, 'a')).toEqual(present)
    expect(await seenBy(holdfast, till)).toEqual(present)
    // By the type alone, the decider that this process knows reads them.
    expect(await seenBy(holdfast, 'till')).toEqual(present)
  })

  it('IF-V2 reach the handler of the present name', async () => {
    const { holdfast } = await written()
    const amounts: number[] = []
    const paid = subscription('paid', { from: till, handlers: { Paid: ({ amount }) => void amounts.push(amount) } })
    const running = await holdfast.project(paid, manual)
    await running.tick()
    expect(amounts).toEqual([5, 7])
  })

  it('IF-V2 come as they were written where no code of their decider is known', async () => {
    const { open } = await written()
    const stranger = await open({ workflows: [] })
    const raw = [{ type: 'Charged', cents: 500 }, { type: 'Noted' }, { type: 'Paid', amount: 7 }]
    expect(await seenBy(stranger, 'till')).toEqual(raw)
  })

  it('IF-V2 park it if no upcaster reads them, and never reach a handler in another form', async () => {
    const { open, holdfast } = await written()
    await holdfast.close()
    const behind = await open({ workflows: [older] })
    const seen: string[] = []
    const all = subscription('all', { from: older, maxAttempts: 1, handle: ({ type }) => void seen.push(type) })
    const running = await behind.project(all, manual)
    await running.tick()
    const [view] = await behind.projections.list()
    expect(view).toMatchObject({ status: 'parked', failure: { type: 'Paid' } })
    expect(seen).toEqual(['Charged', 'Noted'])
  })
})

interface Visit {
  readonly type: 'Sign' | 'Visit'
  readonly id: string
}

const member = decider('member', {
  initial: () => 0,
  evolve: (visits, _event: { type: 'Signed'; customer: string } | { type: 'Visited' }) => visits + 1,
  decide: (_visits, { type, id }: Visit) =>
    type === 'Sign' ? decision({ type: 'Signed', customer: id }) : decision({ type: 'Visited' }),
  id: 'id',
})

describe.each(everyStore)('an erased event and projections on $name', ({ make }) => {
  it('IF-V2 is passed over, or is for onErased, and those after it come', async () => {
    const { open } = await make()
    const keys = new Map<string, Uint8Array | null>()
    const forSubject = (id: string) => {
      if (!keys.has(id)) keys.set(id, randomBytes(32))
      return keys.get(id) ?? null
    }
    const of = (value: unknown) => (value as { customer?: string } | null)?.customer
    const codec = encryptingCodec({
      keys: { a: Buffer.alloc(32, 1) },
      current: 'a',
      subjects: { of, keys: { forSubject } },
    })
    const holdfast = await open({ workflows: [member], codec })
    for (const id of ['ada', 'bob']) await holdfast.execute(member, { type: 'Sign', id })
    await holdfast.execute(member, { type: 'Visit', id: 'ada' })
    keys.set('ada', null)

    const names: string[] = []
    const without = subscription('without', {
      from: member,
      handlers: { Signed: ({ customer }) => void names.push(customer), Visited: () => void names.push('visit') },
    })
    await (await holdfast.project(without, manual)).tick()
    expect(names).toEqual(['bob', 'visit'])

    const erased: unknown[] = []
    const withOne = subscription('with one', {
      from: member,
      handlers: { Signed: () => undefined, Visited: () => undefined },
      onErased: (event, { instance }) => void erased.push([event, instance]),
    })
    await (await holdfast.project(withOne, manual)).tick()
    expect(erased).toEqual([[{ type: 'Signed', erased: true }, 'ada']])

    const counts = memoryProjection('counts', {
      from: member,
      init: () => 0,
      handle: (count) => count + 1,
      onErased: (count) => count + 100,
    })
    const running = await holdfast.project(counts, manual)
    await running.tick()
    expect(running.model).toBe(102)
  })
})
