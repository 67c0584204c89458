// Which run is taken next, and when.

import { describe, expect, it } from 'vitest'
import { operation, workflow } from 'holdfast'
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
    ['delay', (_now: number) => ({ delay: '1h' }) as const],
    ['runAt', (now: number) => ({ runAt: new Date(now + 3_600_000) })],
  ])('SW-W1: %s holds a run back, and it is never early', async (_how, optionsAt) => {
    const { open, clock } = virtualWorld()
    const begunAt: number[] = []
    const later = workflow('later', (_ctx) => void begunAt.push(clock.now()))
    const holdfast = await open({ workflows: [later] })
    await holdfast.work()
    const due = clock.now() + 3_600_000
    const run = await holdfast.start(later, undefined, optionsAt(clock.now()))
    expect((await holdfast.get(run)).dueAt).toEqual(new Date(due))
    await clock.advance(3_600_000 - 1)
    expect(begunAt).toEqual([])
    await clock.advance(1)
    expect(begunAt).toEqual([due])
    expect(await run.status()).toBe('succeeded')
  })

  it('refuses runAt and delay together, and a runAt that is no Date, wherever a run is started', async () => {
    const { open, after } = virtualWorld()
    const later = workflow('later', (_ctx) => 1)
    const both = { runAt: new Date(), delay: '1h' } as const
    const parent = workflow('parent', (ctx) =>
      ctx.child(later, undefined, both).then(undefined, (error: unknown) => error),
    )
    const holdfast = await open({ workflows: [later, parent] })
    await holdfast.work()
    const refused = { code: 'INVALID_OPTION', message: expect.stringContaining('runAt or delay') as string }
    await expect(holdfast.start(later, undefined, both)).rejects.toMatchObject(refused)
    await expect(holdfast.submit('later').runAfter(new Date()).runIn('1h').execute()).rejects.toMatchObject(refused)
    const [answer] = await holdfast.submitBatch([operation.start(later, undefined, both)])
    expect(answer).toMatchObject({ ok: false, error: refused })
    expect(await after((await holdfast.start(parent)).result())).toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.start(later, undefined, { runAt: '1h' as never })).rejects.toThrow('there is delay')
  })
})
