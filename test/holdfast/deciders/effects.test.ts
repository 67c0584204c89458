// Effects of deciders from end to end, on every store: how they are performed, tried again and given up.

import { describe, expect, it } from 'vitest'
import { decider, decision, fatal, workflow, type EffectTools, type Holdfast, type JournalEntry } from 'holdfast'
import { keepLines } from '../open.ts'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1', to: 'ada' } as const

async function journalOf(holdfast: Holdfast, type: string): Promise<readonly JournalEntry[]> {
  const [run] = (await holdfast.find({ type })).runs
  return run === undefined ? [] : holdfast.journal(run.id)
}

function kindsOf(entries: readonly JournalEntry[]): readonly string[] {
  return entries.map(({ kind }) => kind)
}

describe.each(everyStore)('an effect on $name', ({ make }) => {
  it('IF-A13 IF-A14 IF-U1 knows its identity, and its result is decided in the commit that acknowledges it', async () => {
    const { open } = await make()
    const seen: EffectTools[] = []
    const order = orderOf({ mail: (_to, tools) => void seen.push(tools) })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    await until('it is confirmed', async () => (await holdfast.state(order, '1'))?.isConfirmed)
    const [tools] = seen
    expect(tools).toMatchObject({
      effectId: '5',
      workflow: { type: 'order', id: '1' },
      attempt: 1,
      isRetry: false,
      idempotencyKey: 'order:1:5',
    })
    const entries = await journalOf(holdfast, 'order')
    expect(kindsOf(entries)).toEqual([
      'started',
      'input',
      'event',
      'timer',
      'effect',
      'effect-succeeded',
      'input',
      'event',
    ])
    const effect = await until('its run has ended', async () => {
      const [run] = (await holdfast.find({ type: 'order/sendMail', status: 'succeeded' })).runs
      return run
    })
    expect(tools?.createdAt).toEqual(effect.createdAt)
    expect(kindsOf(await holdfast.journal(effect.id))).toEqual(['started', 'succeeded'])
    expect(await holdfast.history(order, '1')).toMatchObject([
      { event: { type: 'Created' }, cause: { from: { kind: 'start' } } },
      { event: { type: 'Confirmed' }, cause: { input: 'MailSent', from: { kind: 'effect', name: 'sendMail#5' } } },
    ])
  })

  it('IF-R1 IF-U1 is tried again under the same key, until it succeeds', async () => {
    const { open } = await make()
    const keys: string[] = []
    const order = orderOf({
      mail: (_to, { idempotencyKey, attempt, isRetry }) => {
        keys.push(`${idempotencyKey} ${attempt} ${isRetry}`)
        if (attempt === 1) throw new Error('No connection')
      },
    })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    await until('it is confirmed', async () => (await holdfast.state(order, '1'))?.isConfirmed)
    expect(keys).toEqual(['order:1:5 1 false', 'order:1:5 2 true'])
  })

  it('IF-R3 IF-R4 IF-R8 that gives up reports it to the decider, is a failed run with a line in the log, and is retried on request', async () => {
    const { open } = await make()
    const world = { isUp: false, calls: 0 }
    const order = orderOf({
      mail: () => {
        world.calls += 1
        if (!world.isUp) throw new Error('No such address')
      },
    })
    const logger = keepLines()
    const holdfast = await open({ workflows: [order], logger })
    await holdfast.work()
    await holdfast.execute(order, create)
    const events = async (): Promise<readonly unknown[]> => holdfast.events(order, '1')
    await until('the decider knows', async () => (await events()).length === 2)
    expect(await events()).toEqual([{ type: 'Created' }, { type: 'Unconfirmed' }])
    expect(world.calls).toBe(2)
    const dead = await until('it is dead', async () => {
      const [run] = (await holdfast.find({ type: 'order/sendMail', status: 'failed' })).runs
      return run
    })
    expect(dead).toMatchObject({ lastError: expect.stringContaining('No such address') as string })
    expect(await holdfast.count({ type: 'order/sendMail', status: 'failed' })).toMatchObject({ count: 1 })
    const lines = logger.lines.filter(({ level }) => level === 'error')
    expect(lines).toMatchObject([{ details: { run: dead.id, type: 'order/sendMail', id: '1', effect: 'sendMail#5' } }])
    expect(lines[0]?.message).toContain(
      'gave up: effect 5 of instance "1" of decider "order", attempt 2: No such address',
    )
    world.isUp = true
    expect(await holdfast.retry(dead.id)).toMatchObject({ outcome: 'retried' })
    await until('it is confirmed', async () => (await holdfast.state(order, '1'))?.isConfirmed)
    expect(world.calls).toBe(3)
    expect(await events()).toEqual([{ type: 'Created' }, { type: 'Unconfirmed' }, { type: 'Confirmed' }])
  })

  it('IF-R2 with a fatal error is tried once; without onDeadLetter only the journal says so', async () => {
    const { open } = await make()
    const calls: number[] = []
    const order = orderOf({
      ship: ({ attempt }) => {
        calls.push(attempt)
        throw fatal(new Error('The harbour is closed'))
      },
    })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, { type: 'Create', orderId: '1' })
    await holdfast.execute(order, { type: 'Pay', orderId: '1', amount: 1 })
    await until('it gave up', async () => kindsOf(await journalOf(holdfast, 'order')).includes('effect-failed'))
    expect(calls).toEqual([1])
    expect(await holdfast.state(order, '1')).toMatchObject({ status: 'paid' })
    const [dead] = (await holdfast.find({ type: 'order/ship', status: 'failed' })).runs
    await holdfast.remove(dead?.id ?? '')
    expect((await holdfast.find({ type: 'order/ship' })).runs).toEqual([])
  })

  it('IF-R6 whose result cannot be decided is performed again, and gives up in the end', async () => {
    const { open } = await make()
    const calls: number[] = []
    const thing = decider('thing', {
      initial: () => [] as readonly string[],
      evolve: (names, event: { type: 'Made' | 'Lost' }) => [...names, event.type],
      decide: (_names, input: { type: 'Make'; id: string } | { type: 'Done' } | { type: 'Lost' }) => {
        if (input.type === 'Done') throw new Error('Not like this')
        if (input.type === 'Lost') return decision({ type: 'Lost' })
        return decision({ type: 'Made' }).effect({ type: 'work' })
      },
      id: { Make: 'id', Done: null, Lost: null },
      effects: {
        work: {
          perform: (_effect, { attempt }) => {
            calls.push(attempt)
            return { type: 'Done' }
          },
          retry: { maxAttempts: 2, kind: 'constant', initial: 0 },
        },
      },
      onDeadLetter: () => ({ type: 'Lost' }),
    })
    const holdfast = await open({ workflows: [thing] })
    await holdfast.work()
    await holdfast.execute(thing, { type: 'Make', id: '1' })
    await until('it is lost', async () => (await holdfast.state(thing, '1'))?.length === 2)
    expect(calls).toEqual([1, 2])
  })

  it.each([['a text'], [{ kind: 'MailSent' }], [{ type: 'MailSent', by: () => 'a function' }]])(
    'whose handler returns what is no input gives up at once, and is not performed again',
    async (returned) => {
      const { open } = await make()
      const calls: number[] = []
      const thing = decider('thing', {
        initial: () => 'new',
        evolve: (_state, event: { type: 'Made' | 'Lost' }) => event.type,
        decide: (_state, input: { type: 'Make'; id: string } | { type: 'Lost' }) =>
          input.type === 'Lost' ? decision({ type: 'Lost' }) : decision({ type: 'Made' }).effect({ type: 'work' }),
        id: { Make: 'id', Lost: null },
        effects: { work: (_effect, { attempt }) => (calls.push(attempt), returned as unknown as undefined) },
        onDeadLetter: () => ({ type: 'Lost' }),
      })
      const holdfast = await open({ workflows: [thing] })
      await holdfast.work()
      await holdfast.execute(thing, { type: 'Make', id: '1' })
      await until('it is lost', async () => (await holdfast.state(thing, '1')) === 'Lost')
      expect(calls).toEqual([1])
      const [dead] = (await holdfast.find({ type: 'thing/work' })).runs
      expect(dead?.lastError).toContain('returned what is no input')
    },
  )

  it('gets no services where the process has none, and an object all the same', async () => {
    const { open } = await make()
    const seen: unknown[] = []
    const order = orderOf({ mail: (_to, { services }) => void seen.push(services) })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    await until('it is performed', () => seen.length > 0)
    expect(seen).toEqual([{}])
  })

  it('IF-E10 IF-C4 is performed after the end of its instance, too, and its outcome changes nothing then', async () => {
    const { open } = await make()
    const shipped: string[] = []
    const order = orderOf({ mail: (to) => void shipped.push(to) })
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await client.execute(order, create)
    await client.execute(order, { type: 'Abandon', orderId: '1' })
    const before = await journalOf(client, 'order')
    await worker.work()
    await until('it is performed', () => shipped.length === 1)
    await until(
      'its run has ended',
      async () => (await client.count({ type: 'order/sendMail', status: 'succeeded' })).count,
    )
    expect(await journalOf(client, 'order')).toEqual(before)
  })

  it('is not begun any more when its instance was cancelled', async () => {
    const { open } = await make()
    const mails: string[] = []
    const order = orderOf({ mail: (to) => void mails.push(to) })
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await client.execute(order, create)
    const [run] = (await client.find({ type: 'order' })).runs
    await client.cancel(run?.id ?? '', { reason: 'a mistake' })
    await worker.work()
    await until(
      'it is cancelled',
      async () => (await client.count({ type: 'order/sendMail', status: 'cancelled' })).count,
    )
    expect(mails).toEqual([])
    expect(await client.execute(order, create)).toEqual({ outcome: 'already-completed' })
  })

  it('may be performed while inputs are decided, and its outcome joins them', async () => {
    const { open } = await make()
    let finish: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (finish = resolve))
    const order = orderOf({ mail: () => gate })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    for (const text of ['a', 'b']) await holdfast.execute(order, { type: 'Note', orderId: '1', text })
    finish()
    await until('it is confirmed', async () => (await holdfast.state(order, '1'))?.isConfirmed)
    expect(await holdfast.state(order, '1')).toEqual({ status: 'open', isConfirmed: true, notes: ['a', 'b'] })
  })

  it('that takes longer than its timeout is aborted and tried again', async () => {
    const { open } = await make()
    const attempts: boolean[] = []
    const slow = decider('slow', {
      initial: () => 'new',
      evolve: (_state, event: { type: 'Begun' | 'Ended' }) => event.type,
      decide: (_state, input: { type: 'Begin'; id: string } | { type: 'End' }) =>
        input.type === 'End' ? decision({ type: 'Ended' }) : decision({ type: 'Begun' }).effect({ type: 'wait' }),
      id: { Begin: 'id', End: null },
      effects: {
        wait: {
          perform: async (_effect, { attempt, abortSignal }) => {
            if (attempt > 1) return { type: 'End' }
            await new Promise((resolve) => abortSignal.addEventListener('abort', resolve))
            attempts.push(abortSignal.aborted)
            return undefined
          },
          timeout: 20,
          retry: { initial: 0, kind: 'constant' },
        },
      },
    })
    const holdfast = await open({ workflows: [slow] })
    await holdfast.work()
    await holdfast.execute(slow, { type: 'Begin', id: '1' })
    await until('it has ended', async () => (await holdfast.state(slow, '1')) === 'Ended')
    expect(attempts).toEqual([true])
  })

  it('starts runs and sends signals with the decision that asks for them', async () => {
    const { open } = await make()
    const greeted: string[] = []
    const greet = workflow('greet', async (ctx, name: string) => {
      await ctx.step('greet', () => void greeted.push(name))
    })
    const wait = workflow('wait', async (ctx) => ctx.receive('called'))
    const caller = decider('caller', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Called' }) => count + 1,
      decide: (_count, input: { type: 'Call'; id: string; to: string }) =>
        decision({ type: 'Called' }).start(greet, input.id).signal(input.to, 'called', { by: input.id }),
      id: 'id',
    })
    const holdfast = await open({ workflows: [greet, wait, caller] })
    await holdfast.work()
    const waiting = await holdfast.start(wait)
    await holdfast.execute(caller, { type: 'Call', id: 'ada', to: waiting.id })
    expect(await waiting.result()).toEqual({ by: 'ada' })
    await until('it was greeted', () => greeted.length === 1)
    expect(greeted).toEqual(['ada'])
  })
})
