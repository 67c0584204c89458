// How a run stands after everything that a step can do to it: status, when it goes on, and who may take it.

import { describe, expect, it } from 'vitest'
import { fatal, retryAfter, workflow } from 'holdfast'
import { stuckOnce } from './stuck.ts'
import { kindsOf, unreliable, virtualWorld } from './virtual-world.ts'

describe('PQ-E5 after a step', () => {
  it('that succeeded, the run has succeeded and is due no more', async () => {
    const { open, after } = virtualWorld()
    const good = workflow('good', (ctx) => ctx.step('one', () => 1))
    const holdfast = await open({ workflows: [good] })
    await holdfast.work()
    const run = await holdfast.start(good)
    await after(run.result())
    expect(await holdfast.get(run)).toMatchObject({ status: 'succeeded', dueAt: null, output: 1 })
  })

  it('that failed for good, the run has failed and is due no more', async () => {
    const { open, after } = virtualWorld()
    const bad = workflow('bad', (ctx) =>
      ctx.step('one', () => {
        throw fatal('never')
      }),
    )
    const holdfast = await open({ workflows: [bad] })
    await holdfast.work()
    const run = await holdfast.start(bad)
    await after(run.result().catch(() => undefined))
    expect(await holdfast.get(run)).toMatchObject({ status: 'failed', dueAt: null, lastError: 'Error: never' })
  })

  it('that failed for now, the run waits for exactly that delay, holds nothing, and the step is tried again', async () => {
    const { open, after, clock } = virtualWorld()
    let attempts = 0
    const flaky = workflow('flaky', (ctx) =>
      ctx.step('one', () => {
        attempts += 1
        if (attempts === 1) throw retryAfter('10 min')
        return attempts
      }),
    )
    const holdfast = await open({ workflows: [flaky] })
    await holdfast.work()
    const run = await holdfast.start(flaky)
    await clock.advance('1 min')
    const { status, dueAt } = await holdfast.get(run)
    const failed = (await holdfast.journal(run)).find(({ kind }) => kind === 'attempt-failed')
    expect(status).toBe('waiting')
    expect(dueAt?.getTime()).toBe((failed?.at.getTime() ?? 0) + 600_000)
    expect(await after(run.result())).toBe(2)
  })

  it('whose process died, the run stays running until the lease is over, and then another takes it', async () => {
    const { open, until, after, store } = virtualWorld()
    const { stuck, signals } = stuckOnce()
    const { line, store: flaky } = unreliable(store)
    const first = await open({ store: flaky, workflows: [stuck] })
    await first.work({ shutdownTimeout: 0 })
    const run = await first.start(stuck)
    await until(() => signals.length === 1)
    line.isUp = false
    expect(await run.status()).toBe('running')
    const second = await open({ workflows: [stuck] })
    await second.work()
    expect(await second.run(run).status()).toBe('running')
    await after(second.run(run).result())
    expect(await kindsOf(second, run)).toContain('crashed')
    line.isUp = true
  })

  it('that was paused, the run is paused and due no more until it is resumed', async () => {
    const { open, clock } = virtualWorld()
    const nap = workflow('nap', async (ctx) => void (await ctx.sleep('1 min')))
    const holdfast = await open({ workflows: [nap] })
    await holdfast.work()
    const run = await holdfast.start(nap)
    await clock.advance('1s')
    await holdfast.pause(run)
    expect(await holdfast.get(run)).toMatchObject({ status: 'paused', dueAt: null })
  })
})

describe('attempts', () => {
  it('WC-R2 IF-U1 are counted across a crash, with the same idempotency key on each', async () => {
    const { open, clock, after } = virtualWorld()
    const seen: [number, string][] = []
    const flaky = workflow('flaky', (ctx) =>
      ctx.step(
        'one',
        ({ attempt, idempotencyKey }) => {
          seen.push([attempt, idempotencyKey])
          throw new Error(`attempt ${attempt}`)
        },
        { retry: { maxAttempts: 3, initial: '10 min', max: '10 min', kind: 'constant' } },
      ),
    )
    const first = await open({ workflows: [flaky] })
    await first.work()
    const run = await first.start(flaky)
    await clock.advance('1 min')
    expect(seen).toHaveLength(1)
    await after(first.close())
    const second = await open({ workflows: [flaky] })
    await second.work()
    await expect(after(second.run(run).result())).rejects.toThrow('attempt 3')
    expect(seen.map(([attempt]) => attempt)).toEqual([1, 2, 3])
    expect(new Set(seen.map(([, key]) => key)).size).toBe(1)
  })
})
