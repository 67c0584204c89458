// Timers of deciders from end to end, on every store.

import { describe, expect, it } from 'vitest'
import { decider, decision, type Holdfast } from 'holdfast'
import { keepLines } from '../open.ts'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { orderOf } from './order.ts'

const create = { type: 'Create', orderId: '1' } as const

/** How long an order stays unpaid here. */
const patienceMs = 60

async function timesOf(holdfast: Holdfast, kind: string): Promise<readonly number[]> {
  const [run] = (await holdfast.find({ type: 'order' })).runs
  const entries = await holdfast.journal(run?.id ?? '')
  return entries.filter((entry) => entry.kind === kind).map(({ at }) => at.getTime())
}

describe.each(everyStore)('a timer on $name', ({ make }) => {
  it('IF-W1 IF-W5 brings its input when it is due and not before, to any worker', async () => {
    const { open } = await make()
    const order = orderOf({ patienceMs })
    const [client, worker] = [await open({ workflows: [order] }), await open({ workflows: [order] })]
    await worker.work()
    await client.execute(order, create)
    await until('it has expired', async () => (await client.state(order, '1'))?.status === 'expired')
    const [armed = 0] = await timesOf(client, 'timer')
    const fired = await timesOf(client, 'input')
    expect((fired[1] ?? 0) - armed).toBeGreaterThanOrEqual(patienceMs)
    expect(await client.history(order, '1')).toMatchObject([
      { event: { type: 'Created' } },
      { event: { type: 'Expired' }, cause: { input: 'Late', from: { kind: 'timer', name: 'payment' } } },
    ])
  })

  it('IF-W1 that is due is decided before a later input, also without a worker', async () => {
    const { open } = await make()
    const order = orderOf({ patienceMs: 1 })
    const holdfast = await open({ workflows: [order] })
    await holdfast.execute(order, create)
    await until('it is over', async () => {
      const { outcome } = await holdfast.execute(order, { type: 'Note', orderId: '1', text: 'x' })
      return outcome === 'already-completed'
    })
    expect(await holdfast.events(order, '1')).toContainEqual({ type: 'Expired' })
  })

  it('IF-W2 IF-W3 IF-W7 of a key replaces the one that has it, and one that is cancelled does not fire', async () => {
    const { open } = await make()
    // Long enough to be replaced before it is due, on a slow disk, too.
    const order = orderOf({ patienceMs: 400 })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    await holdfast.execute(order, { type: 'Extend', orderId: '1' })
    await holdfast.execute(order, { ...create, orderId: '2' })
    await holdfast.execute(order, { type: 'Forgive', orderId: '2' })
    await until('it has expired', async () => (await holdfast.state(order, '1'))?.status === 'expired')
    const { runs } = await holdfast.find({ idempotencyKey: '1' })
    const entries = await holdfast.journal(runs[0]?.id ?? '')
    const at = (kind: string): number => entries.findLast((entry) => entry.kind === kind)?.at.getTime() ?? 0
    expect(entries.filter(({ kind }) => kind === 'timer')).toHaveLength(2)
    expect(at('event') - at('timer')).toBeGreaterThanOrEqual(1_200)
    expect(await holdfast.state(order, '2')).toMatchObject({ status: 'open' })
    expect((await holdfast.find({ idempotencyKey: '2' })).runs).toMatchObject([{ dueAt: null }])
  })

  it('IF-W4 without a key fires for itself, and one in the past at once; its own input may set it again', async () => {
    const { open } = await make()
    const clock = decider('clock', {
      initial: () => [] as readonly string[],
      evolve: (names, event: { type: 'Set' } | { type: 'Rang'; name: string }) =>
        event.type === 'Set' ? names : [...names, event.name],
      decide: (names, input: { type: 'Set'; id: string } | { type: 'Ring'; name: string }, { now }) => {
        if (input.type === 'Ring') {
          const rang = decision({ type: 'Rang', name: input.name })
          return names.length < 4 && input.name === 'again'
            ? rang.timer('again', { after: 5 }, { type: 'Ring', name: 'again' })
            : rang
        }
        return decision({ type: 'Set' })
          .timer({ after: 30 }, { type: 'Ring', name: 'one' })
          .timer({ at: new Date(now - 1_000) }, { type: 'Ring', name: 'past' })
          .timer('again', { after: 5 }, { type: 'Ring', name: 'again' })
      },
      id: { Set: 'id', Ring: null },
    })
    const holdfast = await open({ workflows: [clock] })
    await holdfast.work()
    await holdfast.execute(clock, { type: 'Set', id: '1' })
    const names = await until('all rang', async () => {
      const rang = await holdfast.state(clock, '1')
      return (rang?.length ?? 0) >= 5 && rang?.includes('one') ? rang : null
    })
    expect(names[0]).toBe('past')
    expect(names.filter((name) => name === 'again').length).toBeGreaterThanOrEqual(3)
    expect(names.filter((name) => name === 'one')).toHaveLength(1)
  })

  it('IF-W6 IF-A9 is gone with the end of its instance', async () => {
    const { open } = await make()
    const order = orderOf({ patienceMs })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    await holdfast.execute(order, create)
    await holdfast.execute(order, { type: 'Abandon', orderId: '1' })
    await holdfast.execute(order, { ...create, orderId: '2' })
    await until('the later one has expired', async () => (await holdfast.state(order, '2'))?.status === 'expired')
    expect(await holdfast.events(order, '1')).toEqual([{ type: 'Created' }, { type: 'Expired' }])
  })

  it('IF-R1 IF-R7 IF-R8 whose input cannot be decided is tried again, gives up, and reports that', async () => {
    const { open } = await make()
    const thing = decider('thing', {
      initial: () => [] as readonly string[],
      evolve: (names, event: { type: 'Set' | 'Lost' }) => [...names, event.type],
      decide: (_names, input: { type: 'Set'; id: string } | { type: 'Ring' } | { type: 'Lost'; why: string }) => {
        if (input.type === 'Ring') throw new Error('Too loud')
        if (input.type === 'Lost') return decision({ type: 'Lost' })
        return decision({ type: 'Set' }).timer('alarm', { after: 1 }, { type: 'Ring' })
      },
      id: { Set: 'id', Ring: null, Lost: null },
      retry: { maxAttempts: 2, kind: 'constant', initial: 1 },
      onDeadTimer: ({ key }, error) => ({ type: 'Lost', why: `${key ?? ''} ${String(error)}` }),
    })
    const logger = keepLines()
    const holdfast = await open({ workflows: [thing], logger })
    await holdfast.work()
    await holdfast.execute(thing, { type: 'Set', id: '1' })
    await until('it is lost', async () => (await holdfast.state(thing, '1'))?.length === 2)
    const [run] = (await holdfast.find({ type: 'thing' })).runs
    const kinds = (await holdfast.journal(run?.id ?? '')).map(({ kind }) => kind)
    expect(kinds.slice(4)).toEqual(['attempt-failed', 'timer-failed', 'input', 'event'])
    expect(await holdfast.deadTimers(thing, '1')).toMatchObject([
      { key: 'alarm', attempts: 2, seq: 6, at: expect.any(Date) as Date, error: { code: 'DECIDE_FAILED' } },
    ])
    expect(await holdfast.deadTimers('thing', 'none')).toEqual([])
    const lines = logger.lines.filter(({ details }) => details['type'] === 'thing')
    expect(lines).toMatchObject([
      { level: 'warn', message: expect.stringContaining('tries timer "alarm" again in 1 ms') as string },
      { level: 'error', details: { run: run?.id, id: '1', timer: 'alarm', attempt: 2 } },
    ])
    expect(lines[1]?.message).toContain('gave up timer "alarm" of instance "1" after attempt 2')
    expect(lines[1]?.message).toContain('Too loud')
  })

  it('that is more than a hundred years away is refused', async () => {
    const { open } = await make()
    const order = orderOf({ patienceMs: 101 * 366 * 86_400_000 })
    const holdfast = await open({ workflows: [order] })
    await expect(holdfast.execute(order, create)).rejects.toMatchObject({ code: 'DECIDE_FAILED' })
    expect(await holdfast.state(order, '1')).toBeUndefined()
  })
})
