// Inputs of deciders from end to end, on every store: what a caller learns, and what is in the journal then.

import { describe, expect, it } from 'vitest'
import { decider, decision, type Holdfast } from 'holdfast'
import { everyStore } from '../stores.ts'
import { orderOf, type OrderCall } from './order.ts'

const create = (orderId: string, to?: string): OrderCall => ({
  type: 'Create',
  orderId,
  ...(to === undefined ? {} : { to }),
})
const note = (orderId: string, text: string): OrderCall => ({ type: 'Note', orderId, text })
const pay = (orderId: string, amount: number): OrderCall => ({ type: 'Pay', orderId, amount })

async function kinds(holdfast: Holdfast): Promise<readonly string[]> {
  const { runs } = await holdfast.find({ type: 'order' })
  const entries = await Promise.all(runs.map(({ id }) => holdfast.journal(id)))
  return entries.flat().map(({ kind }) => kind)
}

describe.each(everyStore)('execute on $name', ({ make }) => {
  it('IF-E1 IF-E3 commits what follows before it returns, without a worker, and every process reads it', async () => {
    const { open } = await make()
    const order = orderOf()
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    const created = await one.execute(order, create('1'))
    expect(created).toMatchObject({ outcome: 'accepted', events: [{ type: 'Created' }], state: { status: 'open' } })
    expect(await other.events(order, '1')).toEqual([{ type: 'Created' }])
    expect(await other.executeDynamic('order', note('1', 'hello'))).toMatchObject({
      outcome: 'accepted',
      state: { notes: ['hello'] },
    })
    expect(await one.state(order, '1')).toEqual({ status: 'open', isConfirmed: false, notes: ['hello'] })
    expect(await one.submit({ kind: 'execute', decider: order, input: note('1', 'again') })).toMatchObject({
      outcome: 'accepted',
      state: { notes: ['hello', 'again'] },
    })
  })

  it('IF-E2 IF-C1 commits an input with its events, effects and timers as one transition', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create('1', 'ada'))
    expect(await kinds(holdfast)).toEqual(['started', 'input', 'event', 'timer', 'effect'])
    const [run] = (await holdfast.find({ type: 'order' })).runs
    expect(run).toMatchObject({ status: 'waiting', idempotencyKey: '1', key: 'ada' })
    const effects = await holdfast.find({ type: 'order/sendMail' })
    expect(effects.runs).toMatchObject([
      { status: 'pending', parentId: run?.id, metadata: { id: '1', effect: 'sendMail#5' } },
    ])
    expect(run?.dueAt).toBeInstanceOf(Date)
  })

  it('is sound for the doctor while nothing of its instance is due', async () => {
    const { open } = await make()
    const counted = decider('counted', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, _input: { type: 'Count'; id: string }) => decision({ type: 'Counted' }),
      id: 'id',
      snapshotEvery: 2,
    })
    const holdfast = await open({ workflows: [counted] })
    const offenders = async () => (await holdfast.doctor()).filter((found) => found.offenders.length > 0)
    for (const times of [1, 3]) {
      for (let done = 0; done < times; done += 1) await holdfast.execute(counted, { type: 'Count', id: '1' })
      expect(await offenders()).toEqual([])
    }
  })

  it('IF-E5 IF-E6 IF-A15 answers with a rejection, and one of a first input leaves no instance behind', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    const rejected = { outcome: 'rejected', rejection: { reason: 'There is no such order.' } }
    expect(await holdfast.execute(order, note('1', 'early'))).toEqual(rejected)
    expect(await holdfast.executeDynamic('order', note('1', 'early'), { commandId: 'c' })).toEqual(rejected)
    expect(await holdfast.state(order, '1')).toBeUndefined()
    expect((await holdfast.find({})).runs).toEqual([])
    await holdfast.execute(order, create('1'))
    const before = await kinds(holdfast)
    expect(await holdfast.execute(order, create('1'))).toEqual({
      outcome: 'rejected',
      rejection: { reason: 'It exists.' },
    })
    expect(await kinds(holdfast)).toEqual(before)
  })

  it('IF-U2 answers a repeated command id with its first outcome, a rejection too, in any process', async () => {
    const { open } = await make()
    const order = orderOf()
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await one.execute(order, create('1'), { commandId: 'create' })
    const first = await one.execute(order, note('1', 'a'), { commandId: 'a' })
    const refused = await one.execute(order, create('1'), { commandId: 'refused' })
    for (const holdfast of [one, other]) {
      expect(await holdfast.execute(order, note('1', 'else'), { commandId: 'a' })).toEqual(first)
      expect(await holdfast.execute(order, note('1', 'x'), { commandId: 'refused' })).toEqual(refused)
      expect(await holdfast.execute(order, create('1'), { commandId: 'create' })).toMatchObject({ outcome: 'accepted' })
    }
    expect(await one.events(order, '1')).toHaveLength(2)
    await one.execute(order, { type: 'Abandon', orderId: '1' }, { commandId: 'end' })
    expect(await other.execute(order, note('1', 'late'), { commandId: 'end' })).toMatchObject({
      outcome: 'accepted',
      events: [{ type: 'Expired' }],
    })
  })

  it('IF-U2 answers an input with the content of an earlier one like that, within the window, if it is asked to', async () => {
    const { open } = await make()
    const counter = decider('counter', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, _input: { type: 'Count'; id: string; by: number }) => decision({ type: 'Counted' }),
      id: 'id',
      dedup: { last: 2, within: '1h' },
    })
    const [one, other] = [await open({ workflows: [counter] }), await open({ workflows: [counter] })]
    const count = (holdfast: Holdfast, by: number): Promise<unknown> =>
      holdfast.execute(counter, { type: 'Count', id: '1', by })
    await count(one, 1)
    await count(one, 1)
    await count(other, 1)
    expect(await one.state(counter, '1')).toBe(1)
    await count(other, 2)
    await count(other, 3)
    await count(one, 1)
    expect(await one.state(counter, '1')).toBe(4)
  })

  it('IF-E4 IF-E7 answers inputs after the end with already-completed, and decides nothing', async () => {
    const { open } = await make()
    const order = orderOf()
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await one.execute(order, create('1'))
    await one.execute(order, { type: 'Abandon', orderId: '1' })
    const before = await kinds(one)
    expect(before.at(-1)).toBe('succeeded')
    for (const holdfast of [one, other]) {
      expect(await holdfast.execute(order, create('1'))).toEqual({ outcome: 'already-completed' })
      expect(await holdfast.enqueue(order, note('1', 'late'))).toEqual({ outcome: 'already-completed' })
    }
    expect(await kinds(one)).toEqual(before)
    expect((await one.find({ type: 'order' })).runs).toMatchObject([{ status: 'succeeded' }])
  })

  it('IF-U3 keeps a unique key to one live instance, and gives it to the next when that one is over', async () => {
    const { open } = await make()
    const order = orderOf()
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await one.execute(order, create('1', 'ada'))
    await expect(other.execute(order, create('2', 'ada'))).rejects.toMatchObject({
      code: 'RUN_EXISTS',
      details: { type: 'order', id: '1', key: 'ada' },
    })
    expect(await other.state(order, '2')).toBeUndefined()
    await one.execute(order, { type: 'Abandon', orderId: '1' })
    expect(await other.execute(order, create('2', 'ada'))).toMatchObject({ outcome: 'accepted' })
  })

  it('IF-U3 lets one of many first inputs begin an instance, whichever process is first', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfasts = await Promise.all([1, 2, 3].map(() => open({ workflows: [order] })))
    const inputs = holdfasts.flatMap((holdfast) =>
      Array.from({ length: 5 }, () => holdfast.execute(order, create('1', 'ada'))),
    )
    const outcomes = (await Promise.all(inputs)).map(({ outcome }) => outcome).sort()
    expect(outcomes).toEqual(['accepted', ...Array.from({ length: 14 }, () => 'rejected')])
    const rivals = holdfasts.map((holdfast, at) => holdfast.execute(order, create(`r${at}`, 'eve')))
    const settled = await Promise.allSettled(rivals)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it('begins an instance anew where the one of its id was removed', async () => {
    const { open } = await make()
    const order = orderOf()
    const [one, other] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await one.execute(order, create('1'))
    await other.execute(order, note('1', 'old'))
    const [run] = (await one.find({ type: 'order' })).runs
    await one.remove(run?.id ?? '')
    expect(await other.execute(order, note('1', 'x'))).toMatchObject({ outcome: 'rejected' })
    expect(await one.execute(order, create('1'))).toMatchObject({ outcome: 'accepted', state: { notes: [] } })
    expect(await other.events(order, '1')).toEqual([{ type: 'Created' }])
  })

  it('fails the one input that decide throws for, and shows it', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create('1'))
    const all = [note('1', 'a'), pay('1', -1), note('1', 'b')].map((input) => holdfast.execute(order, input))
    const [first, failed, last] = await Promise.allSettled(all)
    expect([first?.status, failed?.status, last?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(failed).toMatchObject({ reason: { code: 'DECIDE_FAILED' } })
    expect(String((failed as PromiseRejectedResult).reason)).toContain('amount')
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'open', notes: ['a', 'b'] })
  })

  it('IF-E8 refuses a type that is not known, and says which was meant', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await expect(holdfast.executeDynamic('ordre', create('1'))).rejects.toMatchObject({
      code: 'WORKFLOW_UNKNOWN',
      message: expect.stringContaining('Did you mean "order"') as string,
    })
    await expect(holdfast.executeDynamic('order/sendMail', create('1'))).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    await expect(holdfast.execute(orderOf(), create('1'))).rejects.toMatchObject({ code: 'WORKFLOW_UNKNOWN' })
    await expect(holdfast.executeDynamic('order', { type: 'Create' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(holdfast.executeDynamic('order', { type: 'Late' })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(holdfast.execute(order, create('1'), { commandId: '' })).rejects.toMatchObject({
      code: 'INVALID_NAME',
    })
  })

  it('IF-E9 refuses to decide where an event cannot be folded, names it, and writes nothing', async () => {
    const { open } = await make()
    const from = (isOld: boolean) =>
      decider('thing', {
        initial: () => 0,
        evolve: (count, event: { type: 'Made' | 'Changed' }) => {
          if (!isOld && event.type === 'Changed') return undefined as unknown as number
          return count + 1
        },
        decide: (_count, input: { type: 'Make' | 'Change'; id: string }) =>
          decision({ type: input.type === 'Make' ? 'Made' : 'Changed' }),
        id: 'id',
      })
    const [old, current] = [from(true), from(false)]
    const before = await open({ workflows: [old] })
    await before.execute(old, { type: 'Make', id: '1' })
    await before.execute(old, { type: 'Change', id: '1' })
    const holdfast = await open({ workflows: [current] })
    const failing = holdfast.execute(current, { type: 'Make', id: '1' })
    await expect(failing).rejects.toMatchObject({
      code: 'EVENT_UNREADABLE',
      details: { type: 'thing', id: '1', seq: 5, event: 'Changed' },
    })
    expect(await before.events(old, '1')).toHaveLength(2)
  })

  it('refuses to be called from inside decide', async () => {
    const { open } = await make()
    const world: { holdfast: Holdfast | null } = { holdfast: null }
    const nested = decider('nested', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Done' }) => count + 1,
      decide: (_count, input: { type: 'Do'; id: string }) => {
        void world.holdfast?.executeDynamic('nested', { ...input, id: '2' })
        return decision({ type: 'Done' })
      },
      id: 'id',
    })
    world.holdfast = await open({ workflows: [nested] })
    await expect(world.holdfast.execute(nested, { type: 'Do', id: '1' })).rejects.toMatchObject({
      code: 'DECIDE_FAILED',
      cause: { code: 'DECIDE_UNSAFE' },
    })
    expect(await world.holdfast.state(nested, '2')).toBeUndefined()
  })

  it('fails an input that cannot be stored alone', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create('1'))
    const wrong = { type: 'Note', orderId: '1', text: () => 'a function' }
    await expect(holdfast.executeDynamic('order', wrong)).rejects.toMatchObject({ code: 'DECIDE_FAILED' })
    await expect(holdfast.enqueue('order', wrong)).rejects.toMatchObject({ code: 'NOT_STORABLE' })
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: [] })
  })

  it('gives callers values of their own', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create('1'))
    const answer = await holdfast.execute(order, note('1', 'kept'))
    if (answer.outcome !== 'accepted') throw new Error('It was accepted')
    ;(answer.state.notes as string[]).push('smuggled')
    expect(await holdfast.state(order, '1')).toMatchObject({ notes: ['kept'] })
    expect(answer.state.notes).toEqual(['kept', 'smuggled'])
  })

  it('IF-C1 decides inputs of many callers one after the other, each once, and none is lost', async () => {
    const { open } = await make()
    const order = orderOf()
    const holdfasts = await Promise.all([1, 2, 3].map(() => open({ workflows: [order] })))
    await holdfasts[0]?.execute(order, create('1'))
    const texts = holdfasts.flatMap((_, at) => Array.from({ length: 20 }, (_one, index) => `${at}.${index}`))
    const outcomes = await Promise.all(
      texts.map(async (text, at) => holdfasts[at % 3]?.execute(order, note('1', text), { commandId: text })),
    )
    expect(new Set(outcomes.map((answer) => answer?.outcome))).toEqual(new Set(['accepted']))
    const state = await holdfasts[1]?.state(order, '1')
    expect([...(state?.notes ?? [])].sort()).toEqual([...texts].sort())
    const numbers = (await holdfasts[0]?.journal((await holdfasts[0].find({ type: 'order' })).runs[0]?.id ?? ''))?.map(
      ({ seq }) => seq,
    )
    expect(numbers).toEqual(numbers?.map((_, at) => at + 1))
  })
})
