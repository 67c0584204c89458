// What people ask of graphs from outside: nothing that was done is forgotten, and nothing more begins.

import { describe, expect, it } from 'vitest'
import { gate } from '../holdfast/gate.ts'
import { flowWorld } from './flow.ts'
import { entriesOf, spikeWorld } from './world.ts'

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
