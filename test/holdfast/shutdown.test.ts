// How a worker that stops leaves the runs that it moves: what is under way ends and is recorded, nothing new begins, and each
// run is given back at once, or when the shutdown timeout is over.

import { describe, expect, it } from 'vitest'
import { fatal, workflow } from 'holdfast'
import { gate } from './gate.ts'
import { kindsOf, virtualWorld } from './virtual-world.ts'

describe('a worker that stops', () => {
  it('gives a run of 200 steps back after the step under way, and the next one goes on there', async () => {
    const { open, after, until, pause, clock } = virtualWorld()
    const performed: number[] = []
    const many = workflow('many', async (ctx) => {
      for (let at = 1; at <= 200; at += 1) {
        await ctx.step(`step ${at}`, async () => {
          performed.push(at)
          await pause(50)
        })
      }
      return 'all'
    })
    const first = await open({ workflows: [many] })
    const worker = await first.work()
    const run = await first.start(many)
    await until(() => performed.length === 20)
    const before = clock.now()
    await after(worker.stop())
    expect(clock.now() - before).toBeLessThanOrEqual(50)
    expect(performed).toHaveLength(20)
    expect(await run.status()).toBe('pending')
    const second = await open({ workflows: [many] })
    await second.work()
    expect(await after(second.run(run).result())).toBe('all')
    expect(performed).toEqual(Array.from({ length: 200 }, (_, at) => at + 1))
  })

  it('begins none of the steps that wait for room beside those under way', async () => {
    const { open, after, until, pause } = virtualWorld()
    const performed: number[] = []
    const wide = workflow('wide', { parallel: 2 }, async (ctx) => {
      const steps = Array.from({ length: 10 }, (_, at) =>
        ctx.step(`step ${at}`, async () => {
          performed.push(at)
          await pause(50)
        }),
      )
      await Promise.all(steps)
    })
    const first = await open({ workflows: [wide] })
    const worker = await first.work()
    const run = await first.start(wide)
    await until(() => performed.length === 2)
    await after(worker.stop())
    expect(performed).toEqual([0, 1])
    expect(await kindsOf(first, run)).toEqual(['started', 'step-succeeded', 'step-succeeded'])
  })

  it('waits for a body that works without steps', async () => {
    const { open, after, clock, pause } = virtualWorld()
    const job = workflow('job', async () => {
      await pause(10_000)
      return 'done'
    })
    const holdfast = await open({ workflows: [job] })
    const worker = await holdfast.work()
    const run = await holdfast.start(job)
    await clock.advance(1)
    await after(worker.stop())
    expect(await run.status()).toBe('succeeded')
  })

  it('gives back a run that undoes between two undos, and the next one undoes the rest', async () => {
    const { open, after, until } = virtualWorld()
    const undone: string[] = []
    const { passed, open: letGo } = gate()
    const trip = workflow('trip', async (ctx) => {
      for (const name of ['a', 'b', 'c']) {
        await ctx.step(name, () => name, {
          undo: async () => {
            undone.push(name)
            if (name === 'c') await passed
          },
        })
      }
      throw fatal('Enough')
    })
    const first = await open({ workflows: [trip] })
    const worker = await first.work()
    const run = await first.start(trip)
    await until(() => undone.length === 1)
    const stopped = worker.stop()
    letGo()
    await after(stopped)
    expect([undone, await run.status()]).toEqual([['c'], 'pending'])
    const second = await open({ workflows: [trip] })
    await second.work()
    await after(
      second
        .run(run)
        .result()
        .catch(() => undefined),
    )
    expect(undone).toEqual(['c', 'b', 'a'])
    expect((await kindsOf(second, run)).slice(-5)).toEqual(['failing', 'undone', 'undone', 'undone', 'failed'])
  })

  it('abandons what outlives its shutdown timeout, says so in the journal, and the next one attempts it again', async () => {
    const { open, after, until, clock } = virtualWorld()
    const signals: AbortSignal[] = []
    const stuck = workflow('stuck', async (ctx) =>
      ctx.step('hang', ({ abortSignal }) =>
        signals.push(abortSignal) === 1 ? new Promise<never>(() => undefined) : 'at last',
      ),
    )
    const first = await open({ workflows: [stuck] })
    const worker = await first.work({ shutdownTimeout: '7s' })
    const run = await first.start(stuck)
    await until(() => signals.length === 1)
    const before = clock.now()
    await after(worker.stop())
    expect(clock.now() - before).toBe(7_000)
    expect(signals[0]?.aborted).toBe(true)
    expect(await kindsOf(first, run)).toEqual(['started', 'abandoned'])
    expect(await run.status()).toBe('pending')
    const second = await open({ workflows: [stuck] })
    await second.work()
    expect(await after(second.run(run).result())).toBe('at last')
    expect(await kindsOf(second, run)).toEqual(['started', 'abandoned', 'step-succeeded', 'succeeded'])
  })

  it('gives back a body that outlives its shutdown timeout, and the next one begins it again', async () => {
    const { open, after, until } = virtualWorld()
    let begun = 0
    const job = workflow('job', async () => {
      begun += 1
      if (begun === 1) await new Promise(() => undefined)
      return begun
    })
    const first = await open({ workflows: [job] })
    const worker = await first.work({ shutdownTimeout: '7s' })
    const run = await first.start(job)
    await until(() => begun === 1)
    await after(worker.stop())
    expect(await run.status()).toBe('pending')
    const second = await open({ workflows: [job] })
    await second.work()
    expect(await after(second.run(run).result())).toBe(2)
  })

  it('is not kept waiting by a cancellation whose step ignores its signal', async () => {
    const { open, after, until } = virtualWorld()
    const undone: unknown[] = []
    let begun = 0
    const stuck = workflow('stuck', async (ctx) => {
      await ctx.step(
        'hang',
        async () => {
          begun += 1
          await new Promise(() => undefined)
        },
        { undo: (result) => void undone.push(result) },
      )
    })
    const holdfast = await open({ workflows: [stuck] })
    await holdfast.work({ abortGrace: '3s' })
    const run = await holdfast.start(stuck)
    await until(() => begun === 1)
    await holdfast.cancel(run)
    await after(run.result().catch(() => undefined))
    expect([await run.status(), undone]).toEqual(['cancelled', [undefined]])
    expect(await kindsOf(holdfast, run)).toContain('abandoned')
  })
})
