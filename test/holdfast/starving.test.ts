// A loop of awaited calls, on a store that answers at once, leaves the event loop to others now and then: timers, heartbeats, steps.

import { describe, expect, it } from 'vitest'
import { createHoldfast, createMemoryStore, workflow } from 'holdfast'

const flow = workflow('idle', async (ctx) => ctx.receive('never'))

describe.each(['memory', 'sqlite'])('a client that asks without end, %s', (kind) => {
  it.each(['get', 'start', 'signal'] as const)('with %s, lets timers fire', async (method) => {
    const store = kind === 'memory' ? createMemoryStore() : 'sqlite::memory:'
    const holdfast = await createHoldfast({ store, workflows: [flow] })
    const { id } = await holdfast.start(flow)
    let isOver = false
    const timer = setTimeout(() => (isOver = true), 20)
    // Without turns it would come to this bound.
    let calls = 0
    for (; !isOver && calls < 30_000; calls += 1) {
      if (method === 'get') await holdfast.get(id)
      else if (method === 'start') await holdfast.start(flow)
      else await holdfast.signal(id, 'other')
    }
    clearTimeout(timer)
    await holdfast.close()
    expect(isOver).toBe(true)
  })
})
