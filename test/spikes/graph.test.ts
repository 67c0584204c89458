// A graph as a user writes one, on the kernel: every step runs once when its edges say so, and no run hangs.

import { describe, expect, it } from 'vitest'
import { gate } from '../holdfast/gate.ts'
import { leave } from './leave.ts'
import { flowWorld } from './flow.ts'
import { done, graph, waiting, type GraphOptions, type GraphStep } from './graph.ts'
import { namesOf, spikeWorld, transitionsOf } from './world.ts'

const resume = (run: { readonly id: string }, event: unknown, id = 'resume') =>
  [{ runId: run.id, id, name: 'reserve' }, event] as const

describe('a graph', () => {
  it('fans out, joins when every branch has come, and parks while only a step that waits is left', async () => {
    const { store, access, after, clock, work } = spikeWorld()
    const { flow, performed } = flowWorld()
    const holdfast = await work(flow)
    const run = await holdfast.start('flow', { total: 9 })
    await clock.advance('1s')
    expect(await run.status()).toBe('waiting')
    expect((await holdfast.get(run)).dueAt).toBeNull()
    expect(performed.map(({ step }) => step)).toEqual(['check', 'charge', 'reserve'])
    await leave(access, ...resume(run, { event: 'reserved', data: 'shelf 7' }))
    const parts = { check: null, charge: { total: 9 }, reserve: 'shelf 7' }
    expect(await after(run.result())).toEqual({ ...parts, ship: parts })
    expect(performed.map(({ step }) => step)).toEqual(['check', 'charge', 'reserve', 'ship'])
    expect((await transitionsOf(store, run)).slice(-2)).toEqual([
      'woken reserve, step-succeeded reserve',
      'step-succeeded ship, succeeded',
    ])
  })

  it('performs the steps of a fan side by side', async () => {
    const { access, after, until, work } = spikeWorld()
    const charge = gate()
    const reserve = gate()
    const { flow, performed } = flowWorld({
      charge: () => charge.passed,
      reserve: () => reserve.passed.then(() => 'reserved'),
    })
    const holdfast = await work(flow)
    const run = await holdfast.start('flow', 1)
    await until(() => performed.length === 3)
    reserve.open()
    charge.open()
    expect(await after(run.result())).toMatchObject({ charge: 1 })
    expect(await leave(access, ...resume(run, 'reserved'))).toBe(false)
  })

  it('runs what joins an exclusive choice, once, and does not run what only dead edges lead to', async () => {
    const { after, work } = spikeWorld()
    const performed: string[] = []
    const step = (name: string, event: string) => ({
      events: ['left', 'right', 'on'],
      perform: () => {
        performed.push(name)
        return event
      },
    })
    const choice: GraphOptions = {
      steps: {
        choose: step('choose', 'left'),
        left: step('left', 'on'),
        right: step('right', 'on'),
        far: step('far', 'on'),
        join: step('join', 'on'),
      },
      start: 'choose',
      transitions: {
        choose: { left: 'left', right: 'right' },
        left: { on: 'join' },
        right: { on: ['far', 'join'] },
        far: { on: 'join' },
        join: { on: done },
      },
    }
    const holdfast = await work(graph('choice', choice))
    const run = await holdfast.start('choice')
    await after(run.result())
    expect(performed).toEqual(['choose', 'left', 'join'])
  })

  it('ends when its only branch ends early', async () => {
    const { after, work } = spikeWorld()
    const { flow, performed } = flowWorld({ check: () => 'invalid' })
    const holdfast = await work(flow)
    const run = await holdfast.start('flow', 1)
    expect(await after(run.result())).toEqual({ check: null })
    expect(performed).toHaveLength(1)
  })

  it('with a circle that nothing leads into fails instead of waiting for ever', async () => {
    const { after, work } = spikeWorld()
    const step = { events: ['on'], perform: () => 'on' }
    const transitions = { start: { on: done }, a: { on: 'b' }, b: { on: 'a' } } as const
    const holdfast = await work(
      graph('circle', { steps: { start: step, a: step, b: step }, start: 'start', transitions }),
    )
    const run = await holdfast.start('circle')
    await expect(after(run.result())).rejects.toThrow('circle')
  })

  it('that names a step which is not there is refused when it is defined', () => {
    const step = { events: ['on'], perform: () => 'on' }
    expect(() => graph('odd', { steps: { step }, start: 'step', transitions: { step: { on: 'stop' } } })).toThrow(
      '"stop"',
    )
  })
})

describe('a step that waits', () => {
  it('takes a message that was left before it began to wait', async () => {
    const { access, after, until, work } = spikeWorld()
    const { passed, open: letGo } = gate()
    const { flow, performed } = flowWorld({ check: () => passed })
    const holdfast = await work(flow)
    const run = await holdfast.start('flow', 1)
    await until(() => performed.length === 1)
    await leave(access, ...resume(run, 'reserved'))
    letGo()
    expect(await after(run.result())).toMatchObject({ reserve: null })
  })

  it('is not ended by an event that it does not declare, and still waits for one that it does', async () => {
    const { store, access, after, clock, work } = spikeWorld()
    const holdfast = await work(flowWorld().flow)
    const run = await holdfast.start('flow', 1)
    await leave(access, ...resume(run, 'eaten', 'first'))
    await clock.advance('1 min')
    expect(await run.status()).toBe('waiting')
    expect(await namesOf(holdfast, run, 'logged')).toEqual(['refused'])
    const [loaded] = await store.load([{ runId: run.id, after: 0, limit: 0 }])
    expect(loaded?.messages).toEqual([])
    await leave(access, ...resume(run, 'sold-out', 'second'))
    await after(run.result())
    expect(await namesOf(holdfast, run, 'step-succeeded')).toEqual(['check', 'charge', 'reserve', 'ship'])
  })

  it('beside another is ended by its own name, in any order, also by a process that never saw it', async () => {
    const { access, after, clock, work } = spikeWorld()
    const step = (event: string) => ({ events: [event], perform: () => event })
    const wait: GraphStep = { events: ['on'], perform: () => waiting }
    const both = graph('both', {
      steps: { fork: step('both'), a: wait, b: wait, join: step('end') },
      start: 'fork',
      transitions: { fork: { both: ['a', 'b'] }, a: { on: 'join' }, b: { on: 'join' }, join: { end: done } },
    })
    const first = await work(both)
    const run = await first.start('both')
    await clock.advance('1s')
    await leave(access, { runId: run.id, id: '1', name: 'b' }, { event: 'on', data: 'b first' })
    await clock.advance('1s')
    await after(first.close())
    const second = await work(both)
    await leave(access, { runId: run.id, id: '2', name: 'a' }, 'on')
    expect(await after(second.run(run).result())).toEqual({ fork: null, a: null, b: 'b first', join: null })
  })
})

describe('a step that fails', () => {
  it('is tried again with the same key; when it gives up, the run fails and its siblings are asked to stop', async () => {
    const { after, work } = spikeWorld()
    let isHeldBySession = false
    const { flow, performed } = flowWorld({
      charge: () => Promise.reject(new Error('The card was refused')),
      reserve: ({ abortSignal }) =>
        new Promise(() => abortSignal.addEventListener('abort', () => (isHeldBySession = true))),
      retry: { maxAttempts: 3, initial: '2s' },
    })
    const holdfast = await work(flow)
    const run = await holdfast.start('flow', 1)
    await expect(after(run.result())).rejects.toThrow('The card was refused')
    expect(isHeldBySession).toBe(true)
    const charges = performed.filter(({ step }) => step === 'charge')
    expect(charges.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(new Set(charges.map(({ key }) => key)).size).toBe(1)
  })

  it('runs again, and nothing else does, when the run is retried', async () => {
    const { after, work } = spikeWorld()
    let isDown = true
    const { flow, performed } = flowWorld({
      charge: () => {
        if (isDown) throw new Error('The bank is closed')
      },
      reserve: () => 'reserved',
      retry: { maxAttempts: 2 },
    })
    const holdfast = await work(flow)
    const run = await holdfast.start('flow', 1)
    await expect(after(run.result())).rejects.toThrow('closed')
    isDown = false
    await holdfast.retry(run)
    expect(await after(run.result())).toMatchObject({ charge: 1 })
    expect(performed.filter(({ step }) => step === 'charge').map(({ attempt }) => attempt)).toEqual([1, 2, 1])
    expect(performed.map(({ step }) => step).toSorted()).toEqual([
      'charge',
      'charge',
      'charge',
      'check',
      'reserve',
      'ship',
    ])
  })

  it('by an event that it does not declare fails the run', async () => {
    const { after, work } = spikeWorld()
    const holdfast = await work(flowWorld({ charge: () => 'stolen' }).flow)
    const run = await holdfast.start('flow', 1)
    await expect(after(run.result())).rejects.toThrow('"stolen"')
  })
})
