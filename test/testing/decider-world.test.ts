// The test kit with deciders: time that the test moves, effects that it lets fail, processes that die, and crashes everywhere.

import { describe, expect, it } from 'vitest'
import { decider, decision, reject } from 'holdfast'
import { createTest, crashEverywhere, given, type WorkflowTest } from 'holdfast/testing'
import { orderOf, type OrderCall } from '../holdfast/deciders/order.ts'

const create = { type: 'Create', orderId: '1', to: 'ada' } as const

describe('IF-T1 createTest', () => {
  it('fires timers of a decider when the test lets time pass', async () => {
    const order = orderOf()
    await using t = await createTest({ workflows: [order] })
    await t.execute(order, create)
    await t.advance('59 min')
    expect(await t.state(order, '1')).toMatchObject({ status: 'open', isConfirmed: true })
    await t.advance('2 min')
    expect(await t.state(order, '1')).toMatchObject({ status: 'expired' })
  })

  it('lets effects fail, and shows their attempts', async () => {
    const order = orderOf({ pauseMs: 60_000 })
    await using t = await createTest({ workflows: [order] })
    t.fail('sendMail', { times: 2 })
    await t.execute(order, create)
    await t.drain()
    await t.advance('2 min')
    expect(await t.events(order, '1')).toEqual([{ type: 'Created' }, { type: 'Unconfirmed' }])
    expect(t.attempts('sendMail')).toHaveLength(2)
  })

  it('records the key of an effect, and whether its handler has read it', async () => {
    const keys: string[] = []
    const order = orderOf({ mail: (_to, { idempotencyKey }) => void keys.push(idempotencyKey) })
    await using t = await createTest({ workflows: [order] })
    await t.execute(order, create)
    await t.execute(order, { type: 'Pay', orderId: '1', amount: 5 })
    await t.drain()
    expect(t.attempts('sendMail')).toMatchObject([{ idempotencyKey: keys[0], hasReadKey: true }])
    expect(keys[0]).toMatch(/^order:1:\d+$/)
    expect(t.attempts('ship')).toMatchObject([{ hasReadKey: false }])
  })

  it.each(['decide', 'evolve'] as const)('finds the clock of the machine in %s, and says where', async (inside) => {
    const late = (): boolean => Date.now() < 0
    const hasty = decider('hasty', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Gone' }) => (inside === 'evolve' && late() ? count : count + 1),
      decide: (_count, _input: { type: 'Go'; id: string }) =>
        inside === 'decide' && late() ? reject('late') : decision({ type: 'Gone' }),
      id: 'id',
    })
    await using t = await createTest({ workflows: [hasty] })
    await expect(t.execute(hasty, { type: 'Go', id: '1' })).rejects.toMatchObject({
      code: 'BODY_UNSAFE',
      message: expect.stringMatching(
        new RegExp(
          `^${inside} of decider "hasty" uses Date\\.now\\(\\), at .*decider-world.*must be pure.*\\{ now \\}`,
        ),
      ) as string,
    })
  })

  it('answers an input of an instance that was just started, before and after the process dies', async () => {
    const order = orderOf()
    await using t = await createTest({ workflows: [order] })
    const run = await t.start(order, create)
    expect(await t.execute(order, { type: 'Note', orderId: '1', text: 'a' })).toMatchObject({ outcome: 'accepted' })
    void t.start(order, { ...create, orderId: '2', to: 'eve' })
    await t.crash({ away: '1 min' })
    expect(await t.execute(order, { type: 'Note', orderId: '2', text: 'b' })).toMatchObject({ outcome: 'accepted' })
    for (const text of ['c', 'd', 'e', 'f']) await t.enqueue(order, { type: 'Note', orderId: '1', text })
    // The worker holds it by now.
    expect(await t.execute(order, { type: 'Note', orderId: '1', text: 'g' })).toMatchObject({ outcome: 'accepted' })
    await t.pause(run.id)
    const note = { type: 'Note', orderId: '1', text: 'c' } as const
    await expect(t.execute(order, note)).rejects.toMatchObject({ code: 'WRONG_STATUS' })
  })

  it('kills the process of an effect, and the next one performs it', async () => {
    const order = orderOf()
    await using t = await createTest({ workflows: [order] })
    t.slow('sendMail', '1 min')
    await t.execute(order, create)
    await t.drain()
    await t.crash()
    await t.advance('5 min')
    expect(await t.events(order, '1')).toEqual([{ type: 'Created' }, { type: 'Confirmed' }])
    expect(t.attempts('sendMail')).toHaveLength(2)
  })
})

describe('crashEverywhere', () => {
  it('IF-C3 comes to the same end wherever the process of an instance and its effects dies', async () => {
    const order = orderOf({ mail: (_to, { idempotencyKey }) => void idempotencyKey.length })
    const inputs: readonly OrderCall[] = [
      { type: 'Note', orderId: '1', text: 'a' },
      { type: 'Pay', orderId: '1', amount: 5 },
    ]
    const report = await crashEverywhere(order, create, {
      during: async (t) => {
        for (const [at, input] of inputs.entries()) {
          await t.enqueue(order, input, { commandId: `${at}` })
          await t.drain()
        }
      },
      check: async ({ holdfast }) => {
        const events = await holdfast.events(order, '1')
        expect(events.filter(({ type }) => type === 'Paid')).toHaveLength(1)
        expect(events.filter(({ type }) => type === 'Shipped')).toHaveLength(1)
        expect(events.filter(({ type }) => type === 'Noted')).toHaveLength(1)
      },
    })
    expect(report.boundaries).toBeGreaterThan(3)
    // The handler of the mail reads its key, and that of the parcel does not.
    expect(report.withoutKey).toEqual(['ship'])
  })
})

type BillInput =
  | { readonly type: 'Open' | 'Pay'; readonly id: string }
  | { readonly type: 'Mailed' }
  | { readonly type: 'Charged'; readonly receipt: string }

/** A bill whose state keeps the key of an effect. */
const bill = decider('bill', {
  initial: () => ({ isMailed: false, receipt: '' }),
  evolve: (state, event: { type: 'Opened' | 'Paid' | 'Mailed' } | { type: 'Charged'; receipt: string }) =>
    event.type === 'Charged'
      ? { ...state, receipt: event.receipt }
      : { ...state, isMailed: state.isMailed || event.type === 'Mailed' },
  decide: (_state, input: BillInput) => {
    switch (input.type) {
      case 'Open':
        return decision({ type: 'Opened' }).effect({ type: 'mail' })
      case 'Pay':
        return decision({ type: 'Paid' }).effect({ type: 'charge' })
      case 'Mailed':
        return decision({ type: 'Mailed' })
      case 'Charged':
        return decision({ type: 'Charged', receipt: input.receipt })
    }
  },
  id: { '*': 'id', Mailed: null, Charged: null },
  isTerminal: ({ isMailed, receipt }) => isMailed && receipt !== '',
  effects: {
    mail: () => ({ type: 'Mailed' }),
    charge: (_effect, { idempotencyKey }) => ({ type: 'Charged', receipt: `r-${idempotencyKey}` }),
  },
})

describe('crashEverywhere of a decider whose output contains the key of an effect', () => {
  const during = async (t: WorkflowTest): Promise<void> => {
    await t.drain()
    await t.execute(bill, { type: 'Pay', id: '1' })
  }

  it('says that the output does, and passes with sameOutput: false', async () => {
    await expect(crashEverywhere(bill, { type: 'Open', id: '1' }, { during })).rejects.toMatchObject({
      code: 'CRASH_UNSAFE',
      message: expect.stringContaining('the output contains an idempotency key') as string,
    })
    await crashEverywhere(bill, { type: 'Open', id: '1' }, { during, sameOutput: false })
  })
})

describe('crashEverywhere with calls', () => {
  it('IF-C3 answers inputs while the process of their instance begins, and dies', async () => {
    const order = orderOf()
    const report = await crashEverywhere(order, create, {
      during: async (t) => {
        await t.execute(order, { type: 'Note', orderId: '1', text: 'a' }, { commandId: 'a' })
        await t.execute(order, { type: 'Pay', orderId: '1', amount: 5 }, { commandId: 'b' })
      },
      check: async ({ holdfast }) => {
        const types = (await holdfast.events(order, '1')).map(({ type }) => type)
        expect(types.filter((type) => type === 'Noted' || type === 'Paid')).toEqual(['Noted', 'Paid'])
        expect(types).toContain('Shipped')
      },
      // The order may be shipped before its mail is sent.
      sameOutput: false,
    })
    expect(report.boundaries).toBeGreaterThan(1)
  })
})

describe('crashEverywhere with time', () => {
  it('IF-W1 fires a timer once and not early, wherever the process dies that fires it', async () => {
    const order = orderOf({ patienceMs: 60_000 })
    const report = await crashEverywhere(order, create, {
      check: async ({ holdfast }) => {
        const history = await holdfast.history(order, '1')
        const [created, ...rest] = history
        const expired = rest.filter(({ event }) => event.type === 'Expired')
        expect(expired).toHaveLength(1)
        const waited = (expired[0]?.at.getTime() ?? 0) - (created?.at.getTime() ?? 0)
        expect(waited).toBeGreaterThanOrEqual(60_000)
      },
    })
    expect(report.boundaries).toBeGreaterThan(2)
  })
})

describe('IF-T2 given', () => {
  it('tests a decider without a store', () => {
    given(orderOf(), [{ type: 'Created' }])
      .when({ type: 'Pay', orderId: '1', amount: 5 })
      .then({ events: [{ type: 'Paid', amount: 5 }], effects: [{ type: 'ship' }], cancelled: [] })
      .thenState({ status: 'paid', isConfirmed: false, notes: [] })
    given(orderOf())
      .when({ type: 'Note', orderId: '1', text: 'early' })
      .thenRejected({ reason: 'There is no such order.' })
  })
})
