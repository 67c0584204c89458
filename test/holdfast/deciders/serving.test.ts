// What processes make of a decider together, on every store: who performs what, by whose clock, and what can be looked up.

import { describe, expect, it } from 'vitest'
import { decider, decision, workflow } from 'holdfast'
import { systemClock } from '../../../src/system.ts'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1', to: 'ada' } as const

describe.each(everyStore)('a decider on $name', ({ make }) => {
  it('IF-A10 IF-R5 is served where it is registered: others leave its effects to those who have it', async () => {
    const { open } = await make()
    const order = orderOf()
    const other = workflow('other', async () => 'done')
    const [client, stranger] = [await open({ workflows: [order] }), await open({ workflows: [other] })]
    const worker = await open({ workflows: [order, other] })
    await stranger.work()
    await client.execute(order, create)
    const run = await stranger.start(other)
    expect(await run.result()).toBe('done')
    expect((await client.find({ type: 'order/sendMail' })).runs).toMatchObject([{ status: 'pending' }])
    await worker.work()
    await until('it is confirmed', async () => (await client.state(order, '1'))?.isConfirmed)
    await expect(stranger.executeDynamic('order', create)).rejects.toMatchObject({ code: 'WORKFLOW_UNKNOWN' })
  })

  it('IF-C4 IF-C5 IF-C7 IF-N1 IF-N3 has effects of one instance performed by all workers at once', async () => {
    const { open } = await make()
    const busy = new Set<string>()
    const named = (name: string) =>
      decider('many', {
        initial: () => 0,
        evolve: (count, _event: { type: 'Asked' | 'Done' }) => count + 1,
        decide: (_count, input: { type: 'Ask'; id: string } | { type: 'Done' }) => {
          if (input.type === 'Done') return decision({ type: 'Done' })
          return decision({ type: 'Asked' }).effect({ type: 'go' }).effect({ type: 'go' }).effect({ type: 'go' })
        },
        id: { Ask: 'id', Done: null },
        effects: {
          // None ends before all three are under way: only three workers with one slot each can do that.
          go: async () => {
            busy.add(name)
            await until('all are under way', () => busy.size === 3)
            return { type: 'Done' }
          },
        },
      })
    const many = named('client')
    const client = await open({ workflows: [many] })
    for (const name of ['a', 'b', 'c']) await (await open({ workflows: [named(name)] })).work({ concurrency: 1 })
    await client.execute(many, { type: 'Ask', id: '1' })
    await until('all are done', async () => (await client.state(many, '1')) === 4)
    expect([...busy].sort()).toEqual(['a', 'b', 'c'])
  })

  it('IF-A8 IF-S3 IF-S6 has one timer of a key at most, as its journal says, and the run is due by that', async () => {
    const { open } = await make()
    const order = orderOf({ patienceMs: 3_600_000 })
    const holdfast = await open({ workflows: [order] })
    const dueIn = async (): Promise<number | null> => {
      const { id } = await holdfast.instance(order, '1')
      const { dueAt } = await holdfast.get(id)
      const last = (await holdfast.journal(id)).findLast(({ kind }) => kind === 'timer')
      return dueAt === null ? null : dueAt.getTime() - (last?.at.getTime() ?? 0)
    }
    await holdfast.execute(order, create)
    expect(await dueIn()).toBe(3_600_000)
    await holdfast.execute(order, { type: 'Extend', orderId: '1' })
    expect(await dueIn()).toBe(3 * 3_600_000)
    await holdfast.execute(order, { type: 'Forgive', orderId: '1' })
    expect(await dueIn()).toBeNull()
    const kinds = (await holdfast.journal((await holdfast.instance(order, '1')).id)).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind.startsWith('timer'))).toEqual(['timer', 'timer', 'timer-cancelled'])
  })

  it('IF-S8 IF-W5 counts by the clock of the store, though that of the process is an hour ahead', async () => {
    const { open } = await make()
    const ahead = { ...systemClock, now: () => systemClock.now() + 3_600_000 }
    const order = orderOf({ patienceMs: 1_800_000 })
    const holdfast = await open({ workflows: [order], ports: { clock: ahead } })
    await holdfast.work()
    await holdfast.execute(order, create)
    await until('the effect is done', async () => (await holdfast.state(order, '1'))?.isConfirmed)
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'open' })
    const [first] = await holdfast.history(order, '1')
    expect((first?.at.getTime() ?? Infinity) - Date.now()).toBeLessThan(1_800_000)
  })

  it('IF-O5 IF-S5 is looked up by its name: instances page by page, their states, events and failed effects', async () => {
    const { open } = await make()
    const order = orderOf({
      mail: () => {
        throw new Error('No such address')
      },
    })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    for (const orderId of ['1', '2', '3']) await holdfast.execute(order, { type: 'Create', orderId })
    await holdfast.execute(order, { ...create, orderId: '4' })
    const page = await holdfast.find({ type: 'order', limit: 3 })
    expect(page.runs.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['4', '3', '2'])
    const rest = await holdfast.find({ type: 'order', limit: 3, after: page.next ?? '' })
    expect(rest.runs.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['1'])
    expect(await holdfast.state('order', '3')).toMatchObject({ status: 'open' })
    expect(await holdfast.events('order', '3')).toEqual([{ type: 'Created' }])
    for (const id of ['none', '']) {
      expect(await holdfast.state('order', id)).toBeUndefined()
      expect(await holdfast.events('order', id)).toEqual([])
    }
    const dead = await until('it gave up', async () => {
      const [run] = (await holdfast.find({ type: 'order/sendMail', status: 'failed' })).runs
      return run
    })
    expect(dead.lastError).toContain('No such address')
  })

  it('IF-A1 IF-A4 IF-A5 IF-A6 IF-A7 decides by its state and the time that it is given, and asks for much at once', async () => {
    const { open } = await make()
    const done: string[] = []
    const seen: number[] = []
    const plan = decider('plan', {
      initial: () => [] as readonly string[],
      evolve: (names, event: { type: 'A' | 'B'; at: number }) => [...names, event.type],
      decide: (names, input: { type: 'Go'; id: string } | { type: 'Later' }, { now }) => {
        seen.push(now)
        if (input.type === 'Later') return decision({ type: 'B', at: names.length })
        return decision({ type: 'A', at: now }, { type: 'B', at: now })
          .effect({ type: 'one' })
          .effect({ type: 'two' })
          .timer('soon', { after: 5 }, { type: 'Later' })
          .timer({ at: new Date(now + 10) }, { type: 'Later' })
          .timer('never', { after: '1h' }, { type: 'Later' })
          .cancelTimer('never')
      },
      id: { Go: 'id', Later: null },
      effects: { one: () => void done.push('one'), two: () => void done.push('two') },
    })
    const holdfast = await open({ workflows: [plan] })
    await holdfast.work()
    const answer = await holdfast.execute(plan, { type: 'Go', id: '1' })
    expect(answer).toMatchObject({ outcome: 'accepted', events: [{ type: 'A' }, { type: 'B' }], state: ['A', 'B'] })
    await until('both fired', async () => (await holdfast.state(plan, '1'))?.length === 4)
    await until('both are performed', () => done.length === 2)
    expect((await holdfast.events(plan, '1'))[0]).toMatchObject({ at: seen[0] })
    const { id } = await holdfast.instance(plan, '1')
    await until('nothing is due', async () => (await holdfast.get(id)).dueAt === null)
  })

  it('IF-A2 IF-A3 IF-A12 names its instance by a field, by one for each type of input, or by a function', async () => {
    const { open } = await make()
    const base = {
      initial: () => 0,
      evolve: (count: number, _event: { type: 'Counted' }) => count + 1,
      decide: (_count: number, _input: { type: 'A' | 'B'; one: string; two: string }) => decision({ type: 'Counted' }),
    }
    const deciders = [
      decider('by-field', { ...base, id: 'one' }),
      decider('by-type', { ...base, id: { '*': 'one', B: 'two' } }),
      decider('by-function', { ...base, id: ({ one, two }) => `${one}/${two}` }),
    ] as const
    const holdfast = await open({ workflows: [...deciders] })
    for (const { type } of deciders) {
      await holdfast.executeDynamic(type, { type: 'A', one: 'x', two: 'y' })
      await holdfast.executeDynamic(type, { type: 'B', one: 'x', two: 'y' })
    }
    expect(await holdfast.state('by-field', 'x')).toBe(2)
    expect([await holdfast.state('by-type', 'x'), await holdfast.state('by-type', 'y')]).toEqual([1, 1])
    expect(await holdfast.state('by-function', 'x/y')).toBe(2)
    await expect(holdfast.executeDynamic('by-field', { type: 'A', two: 'y' })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })
})
