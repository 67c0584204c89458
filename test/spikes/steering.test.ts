// What people ask of deciders and graphs from outside: nothing that was done is forgotten, and nothing more begins.

import { describe, expect, it } from 'vitest'
import { gate } from '../holdfast/gate.ts'
import { changed } from '../holdfast/virtual-world.ts'
import { enqueue, execute } from './execute.ts'
import { flowWorld } from './flow.ts'
import { orderWorld, type OrderInput } from './order.ts'
import { entriesOf, spikeWorld, transitionsOf } from './world.ts'

const create: OrderInput = { type: 'Create', to: 'ada' }
const pay: OrderInput = { type: 'Pay', amount: 5 }

describe('cancelling a decider', () => {
  it('that is idle ends it at once, and its timer does not fire', async () => {
    const { store, clock, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const run = await holdfast.start('order', create)
    await clock.advance('1 min')
    expect(await run.cancel({ reason: 'changed my mind' })).toMatchObject({ status: 'cancelled' })
    await clock.advance('2h')
    expect((await transitionsOf(store, run)).at(-1)).toBe('cancelled')
  })

  it('asks an effect to stop, records what it returns all the same, and begins and decides nothing more', async () => {
    const { store, access, after, clock, work, until } = spikeWorld()
    const { passed, open: letGo } = gate()
    let isHeldBySession = false
    const { order, performed } = orderWorld({
      sendMail: ({ abortSignal }) => {
        abortSignal.addEventListener('abort', () => (isHeldBySession = true))
        return passed
      },
    })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await until(() => performed.length === 1)
    await holdfast.cancel(run, { reason: 'enough' })
    expect(isHeldBySession).toBe(true)
    await enqueue(access, run.id, pay, 'pay')
    await clock.advance('2s')
    letGo()
    await expect(after(run.result())).rejects.toThrow('enough')
    expect((await transitionsOf(store, run)).slice(2)).toEqual([
      'effect-succeeded sendMail, input MailSent, event Confirmed, cancelled',
    ])
    expect((await entriesOf(store, run)).at(-1)?.meta).toEqual({ reason: 'enough', notUndone: [] })
    expect(await after(execute(access, run.id, pay, 'pay'))).toMatchObject({ outcome: 'already-completed' })
    expect(performed).toHaveLength(1)
  })

  it('does not record the error of an effect that obeys', async () => {
    const { store, after, work, until } = spikeWorld()
    const { order, performed } = orderWorld({
      sendMail: ({ abortSignal }) =>
        new Promise((_, reject) => abortSignal.addEventListener('abort', () => reject(new Error('Stopped')))),
    })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await until(() => performed.length === 1)
    await holdfast.cancel(run)
    await expect(after(run.result())).rejects.toThrow('cancelled')
    expect((await transitionsOf(store, run)).slice(2)).toEqual(['cancelled'])
  })

  it('at once takes the run from its holder: what its effect returns is not recorded', async () => {
    const { store, work, until, clock } = spikeWorld()
    const { passed, open: letGo } = gate()
    const { order, performed } = orderWorld({ sendMail: () => passed })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await until(() => performed.length === 1)
    await holdfast.cancel(run, { mode: 'now' })
    letGo()
    await clock.advance('1 min')
    expect((await transitionsOf(store, run)).slice(2)).toEqual(['cancelled'])
  })

  it('while its last commit is on its way keeps what that recorded, and ends it as cancelled', async () => {
    const { store, open, access, after, clock } = spikeWorld()
    const { order } = orderWorld()
    const operator = await open({ workflows: [order] })
    const late = changed(store, {
      commit: async (transitions) => {
        const last = transitions.find(({ status }) => status === 'succeeded')
        if (last !== undefined) await operator.cancel(last.runId, { reason: 'too late' })
        return store.commit(transitions)
      },
    })
    const holdfast = await open({ store: late, workflows: [order] })
    await holdfast.work({ signals: false })
    const run = await holdfast.start('order', create)
    await clock.advance('1s')
    await enqueue(access, run.id, { type: 'Late' }, 'late')
    await expect(after(run.result())).rejects.toThrow('too late')
    const kinds = (await entriesOf(store, run)).map(({ kind }) => kind)
    expect(kinds.slice(-4)).toEqual(['event', 'input', 'event', 'cancelled'])
    const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 0 }])
    expect(loaded?.messages).toEqual([])
    expect(await after(execute(access, run.id, { type: 'Late' }, 'late'))).toMatchObject({ outcome: 'accepted' })
  })
})

describe('pausing a decider', () => {
  it('lets its effect end, begins nothing, and keeps inputs and timers until it is resumed', async () => {
    const { store, access, after, clock, work, until } = spikeWorld()
    const { passed, open: letGo } = gate()
    const { order, performed } = orderWorld({ sendMail: () => passed })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create)
    await until(() => performed.length === 1)
    await holdfast.pause(run)
    await enqueue(access, run.id, { type: 'Note', text: 'later' }, 'note')
    await clock.advance('2s')
    letGo()
    await clock.advance('2h')
    expect(await run.status()).toBe('paused')
    expect((await transitionsOf(store, run)).at(-1)).toBe(
      'effect-succeeded sendMail, input MailSent, event Confirmed, paused',
    )
    await holdfast.resume(run)
    // The note was left before the timer was due.
    expect(await after(run.result())).toMatchObject({ status: 'expired', notes: ['later'] })
  })

  it('that waits stops its timer, which fires late rather than never', async () => {
    const { store, after, clock, work } = spikeWorld()
    const holdfast = await work(orderWorld().order)
    const run = await holdfast.start('order', create)
    await clock.advance('1 min')
    await holdfast.pause(run)
    await clock.advance('5h')
    expect(await run.status()).toBe('paused')
    await holdfast.resume(run)
    await after(run.result())
    expect((await transitionsOf(store, run)).slice(-3)).toEqual([
      'paused',
      'resumed',
      'input Late, event Expired, succeeded',
    ])
  })
})

describe('a decider whose time is over', () => {
  it('fails, with its effect asked to stop', async () => {
    const { after, work, until } = spikeWorld()
    let isHeldBySession = false
    const { order, performed } = orderWorld({
      sendMail: ({ abortSignal }) =>
        new Promise(() => abortSignal.addEventListener('abort', () => (isHeldBySession = true))),
    })
    const holdfast = await work(order)
    const run = await holdfast.start('order', create, { timeout: '10 min' })
    await until(() => performed.length === 1)
    await expect(after(run.result())).rejects.toThrow(/10 min|time/)
    expect(isHeldBySession).toBe(true)
  })
})

describe('cancelling and pausing a graph', () => {
  it('records what running steps return, begins no other, and ends or stops it', async () => {
    const { store, after, clock, until, work } = spikeWorld()
    const { passed, open: letGo } = gate()
    const { flow, performed } = flowWorld({ charge: () => passed, reserve: () => 'reserved' })
    const holdfast = await work(flow)
    const cancelled = await holdfast.start('flow', 1)
    const paused = await holdfast.start('flow', 1)
    await until(() => performed.filter(({ step }) => step === 'reserve').length === 2)
    await holdfast.cancel(cancelled, { reason: 'enough' })
    await holdfast.pause(paused, { note: 'lunch' })
    await clock.advance('2s')
    letGo()
    await expect(after(cancelled.result())).rejects.toThrow('enough')
    expect((await entriesOf(store, cancelled)).slice(-2).map(({ kind, name }) => [kind, name])).toEqual([
      ['step-succeeded', 'charge'],
      ['cancelled', null],
    ])
    await clock.advance('1 min')
    expect(await paused.status()).toBe('paused')
    expect(performed.some(({ step }) => step === 'ship')).toBe(false)
    await holdfast.resume(paused)
    await after(paused.result())
    expect(performed.filter(({ step }) => step === 'ship')).toHaveLength(1)
  })
})
