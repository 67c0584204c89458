// Instances that a worker cannot move on, through no fault of an input: it comes back to them less and less often.

import { describe, expect, it } from 'vitest'
import { decider, decision, workflow } from 'holdfast'
import { virtualWorld } from '../virtual-world.ts'

type Input = { readonly type: string; readonly id: string }

describe('an instance whose transition cannot be prepared', () => {
  it('is not tried again and again without a pause, and goes on once it can', async () => {
    const { clock, open, after } = virtualWorld()
    const world = { isDown: false, decisions: 0 }
    const texts: string[] = []
    const offload = {
      thresholdBytes: 1_000,
      put: async (text: string) => {
        if (world.isDown) throw new Error('The bucket is gone')
        return String(texts.push(text) - 1)
      },
      get: async (reference: string) => texts[Number(reference)] ?? '',
    }
    const large = workflow('large', async (_ctx, text: string) => text.length)
    const order = decider('order', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, { type }: Input) => {
        world.decisions += 1
        const counted = decision({ type: 'Counted' })
        return type === 'Large' ? counted.start(large, 'x'.repeat(2_000)) : counted
      },
      id: 'id',
    })
    const holdfast = await open({ workflows: [order, large], offload })
    await after(holdfast.execute(order, { type: 'Small', id: '1' }))
    await holdfast.work()
    world.isDown = true
    await holdfast.enqueue(order, { type: 'Large', id: '1' })
    await clock.advance('60s')
    expect(world.decisions).toBeGreaterThan(2)
    expect(world.decisions).toBeLessThan(30)
    world.isDown = false
    expect(await after(holdfast.execute(order, { type: 'Small', id: '1' }))).toMatchObject({ state: 3 })
  })
})
