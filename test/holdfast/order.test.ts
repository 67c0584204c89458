// Which run is taken next, and when.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { virtualWorld } from './virtual-world.ts'

describe('the order in which runs are taken', () => {
  it('SW-P5: a higher number is more urgent, 0 is the default, and equals go by age', async () => {
    const { open, after } = virtualWorld()
    const order: string[] = []
    const ranked = workflow('ranked', (_ctx, name: string) => void order.push(name))
    const starter = await open({ workflows: [ranked] })
    const runs = [
      await starter.start(ranked, 'low', { priority: -1 }),
      await starter.start(ranked, 'default'),
      await starter.start(ranked, 'zero', { priority: 0 }),
      await starter.start(ranked, 'high', { priority: 100 }),
    ]
    const worker = await open({ workflows: [ranked] })
    await worker.work({ concurrency: 1 })
    await after(Promise.all(runs.map((run) => run.result())))
    expect(order).toEqual(['high', 'default', 'zero', 'low'])
  })

  it.each([
    ['this long from now', (_now: number) => '1h' as const],
    ['at a point in time', (now: number) => new Date(now + 3_600_000)],
  ])('SW-W1: runAt delays a run, and it is never early: %s', async (_how, runAt) => {
    const { open, clock } = virtualWorld()
    const begunAt: number[] = []
    const later = workflow('later', (_ctx) => void begunAt.push(clock.now()))
    const holdfast = await open({ workflows: [later] })
    await holdfast.work()
    const due = clock.now() + 3_600_000
    const run = await holdfast.start(later, undefined, { runAt: runAt(clock.now()) })
    expect((await holdfast.get(run)).dueAt).toEqual(new Date(due))
    await clock.advance(3_600_000 - 1)
    expect(begunAt).toEqual([])
    await clock.advance(1)
    expect(begunAt).toEqual([due])
    expect(await run.status()).toBe('succeeded')
  })
})
