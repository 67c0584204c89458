// What is seen of instances, on every store: their states at earlier times, all that is pending, and the steps that they took.

import { describe, expect, it } from 'vitest'
import { decider, decision, diagram, reject } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'

interface Order {
  readonly status: 'new' | 'open' | 'paid'
  readonly total: number
}
type In =
  | { readonly type: 'Create' | 'Hurry'; readonly id: string }
  | { readonly type: 'Pay'; readonly id: string; readonly amount: number }
  | { readonly type: 'Late' }
type Event = { readonly type: 'Created' | 'Hurried' } | { readonly type: 'Paid'; readonly amount: number }

const base = {
  initial: (): Order => ({ status: 'new', total: 0 }),
  evolve: (state: Order, event: Event): Order => {
    if (event.type !== 'Paid') return event.type === 'Created' ? { ...state, status: 'open' } : state
    const total = state.total + event.amount
    return { status: total >= 10 ? 'paid' : 'open', total }
  },
  decide: (state: Order, input: In) => {
    if (input.type === 'Create') {
      if (state.status !== 'new') return reject('exists')
      return decision({ type: 'Created' }).effect({ type: 'mail' }).timer('late', { after: '1 day' }, { type: 'Late' })
    }
    if (state.status === 'new') return reject('missing')
    if (input.type === 'Pay') return decision({ type: 'Paid', amount: input.amount })
    return decision({ type: 'Hurried' })
  },
  id: { '*': 'id', Late: null },
  isTerminal: ({ status }: Order) => status === 'paid',
  effects: { mail: () => undefined },
} as const
const order = decider('order', {
  ...base,
  view: {
    stateInfo: ({ status, total }) => ({ status, fields: { total } }),
    definition: {
      initial: 'new',
      terminal: ['paid'],
      transitions: [
        { from: 'new', input: 'Create', to: 'open', effects: ['mail'], timers: ['late'] },
        { from: 'open', input: 'Pay', to: 'paid' },
        { from: 'open', input: 'Late', to: 'paid' },
      ],
    },
  },
})
const create = (id: string) => ({ type: 'Create', id }) as const
const pay = (id: string, amount: number) => ({ type: 'Pay', id, amount }) as const

describe.each(everyStore)('seeing instances on $name', ({ make }) => {
  it('IF-O4 gives the state at an earlier event, and at an earlier time', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create('1'))
    await holdfast.execute(order, pay('1', 3))
    await holdfast.execute(order, pay('1', 4))
    const [created, first, second] = await holdfast.history(order, '1')
    const at = async (when: number | Date | undefined) =>
      holdfast.state(order, '1', when === undefined ? {} : { at: when })
    expect(await at(created?.seq)).toEqual({ status: 'open', total: 0 })
    expect(await at(first?.seq)).toEqual({ status: 'open', total: 3 })
    expect(await at((second?.seq ?? 0) - 1)).toEqual({ status: 'open', total: 3 })
    expect(await at(10_000)).toEqual({ status: 'open', total: 7 })
    expect(await at(second?.at)).toEqual({ status: 'open', total: 7 })
    expect(await at(0)).toBeUndefined()
    expect(await at(new Date((created?.at.getTime() ?? 0) - 1))).toBeUndefined()
    expect(await holdfast.state(order, 'none', { at: 5 })).toBeUndefined()
    await expect(holdfast.state(order, '1', { at: new Date('x') })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.state(order, '1', { at: 1.5 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('IF-O4 IF-O5 inspects an instance: its state, history, pending effects and timers, and what may follow', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create('1'))
    await holdfast.execute(order, pay('1', 3))
    await holdfast.enqueue(order, pay('1', 1))
    const seen = await holdfast.inspect(order, '1')
    expect(seen).toMatchObject({
      type: 'order',
      id: '1',
      status: 'waiting',
      state: { status: 'open', total: 3 },
      info: { status: 'open', fields: { total: 3 }, isTerminal: false },
      transitions: [
        { input: 'Pay', to: 'paid' },
        { input: 'Late', to: 'paid' },
      ],
      history: [{ event: { type: 'Created' }, cause: { input: 'Create' } }, { event: { amount: 3 } }],
      effects: [{ type: 'mail', run: { status: 'pending' } }],
      timers: [{ key: 'late', failures: 0 }],
      backlog: { inputs: 1 },
      unreadable: null,
      endedAt: null,
    })
    const [timer] = seen?.timers ?? []
    expect((timer?.dueAt?.getTime() ?? 0) - (seen?.createdAt.getTime() ?? 0)).toBeGreaterThanOrEqual(86_400_000)
    expect((await holdfast.inspect(order, '1', { limit: 1 }))?.history).toMatchObject([{ event: { amount: 3 } }])
    expect((await holdfast.inspect('order', '1', { limit: 0 }))?.history).toEqual([])
    await holdfast.work()
    await until('the mail is sent', async () => (await holdfast.inspect(order, '1'))?.effects.length === 0)
    await holdfast.execute(order, pay('1', 10))
    expect(await holdfast.inspect(order, '1')).toMatchObject({
      status: 'succeeded',
      transitions: [],
      timers: [],
      info: { isTerminal: true },
    })
    expect(await holdfast.inspect(order, 'none')).toBeUndefined()
  })

  it('IF-O4 IF-E9 inspects an instance with an event that this code cannot read, up to that event', async () => {
    const { open } = await make()
    const old = await open({ workflows: [order] })
    await old.execute(order, create('1'))
    await old.execute(order, pay('1', 3))
    await old.close()
    const broken = decider('order', {
      ...base,
      upcast: { Paid: { 2: (event: { amount: number }) => ({ type: 'Paid', ...event }) } },
    } as never)
    const holdfast = await open({ workflows: [broken] })
    const seen = await holdfast.inspect('order', '1')
    expect(seen).toMatchObject({
      state: { status: 'open', total: 0 },
      info: null,
      history: [{ event: { type: 'Created' } }],
      unreadable: { code: 'EVENT_UNREADABLE', details: { event: 'Paid' } },
    })
  })

  it('IF-O3 IF-O4 counts the steps that instances took, with rejections, and draws them beside what was declared', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    for (const id of ['1', '2', '3']) await holdfast.execute(order, create(id))
    await holdfast.execute(order, create('1'), { commandId: 'again' })
    await holdfast.execute(order, pay('1', 3))
    await holdfast.execute(order, pay('1', 30))
    await holdfast.execute(order, { type: 'Hurry', id: '2' })
    const observed = await holdfast.observe(order)
    expect(observed).toMatchObject({ instances: 3, isCapped: false, initial: ['new'], terminal: ['paid'] })
    const steps = observed.transitions.map(({ from, input, to, outcome, count }) => [from, input, to, outcome, count])
    expect(steps).toEqual([
      ['new', 'Create', 'open', 'accepted', 3],
      ['open', 'Create', 'open', 'rejected', 1],
      ['open', 'Hurry', 'open', 'accepted', 1],
      ['open', 'Pay', 'open', 'accepted', 1],
      ['open', 'Pay', 'paid', 'accepted', 1],
    ])
    expect(observed.transitions[0]).toMatchObject({ effects: ['mail'], timers: ['late'] })
    const [first] = observed.transitions
    expect(first?.firstAt.getTime()).toBeLessThanOrEqual(first?.lastAt.getTime() ?? 0)
    const picture = diagram(order, { observed })
    expect(picture).toContain('open --> paid : Late (never seen)')
    expect(picture).toContain('open --> open : Hurry (1×) (not declared)')
    expect(picture).toContain('new --> open : Create [mail] ⏱late (3×)')
    expect(await holdfast.observe('order', { limit: 2 })).toMatchObject({ instances: 2, isCapped: true })
    const plain = await open({ workflows: [decider('order', base)] })
    await expect(plain.observe('order')).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('has no view') as string,
    })
  })
})
