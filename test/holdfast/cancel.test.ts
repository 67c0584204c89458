// Stopping a run for good: at once where nobody holds it, by its holder otherwise. Cancelled stays cancelled.

import { describe, expect, it } from 'vitest'
import { isHoldfastError, workflow, type HoldfastError } from 'holdfast'
import { gate } from './gate.ts'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

const errorOf = (promise: Promise<unknown>): Promise<HoldfastError> =>
  promise.then(
    () => Promise.reject(new Error('It was expected to be refused')),
    (error: unknown) => error as HoldfastError,
  )

const idle = workflow('idle', async (ctx) => void (await ctx.sleep('1 day')))

describe('a run that nobody holds', () => {
  it.each(['pending', 'waiting', 'paused'] as const)(
    'WC-P3 is cancelled at once while it is %s, and never begun again',
    async (status) => {
      const { open, clock } = virtualWorld()
      const holdfast = await open({ workflows: [idle] })
      if (status === 'waiting') await holdfast.work()
      const run = await holdfast.start(idle)
      await clock.advance('1s')
      if (status === 'paused') await holdfast.pause(run)
      expect(await run.status()).toBe(status)
      expect(await run.cancel({ reason: 'sold out' })).toEqual({ outcome: 'cancelled', status: 'cancelled' })
      const error = await errorOf(run.result())
      expect([error.code, error.message, error.details['reason']]).toEqual([
        'RUN_CANCELLED',
        `Run ${run.id} was cancelled: sold out.`,
        'sold out',
      ])
      await holdfast.work().catch(() => undefined)
      await clock.advance('2 days')
      expect(await run.status()).toBe('cancelled')
      expect((await holdfast.journal(run)).at(-1)).toMatchObject({ kind: 'cancelled', meta: { reason: 'sold out' } })
    },
  )

  it('WC-P3 HE-P1 that has ended is left as it is, and one that is not there is told apart', async () => {
    const { open, after } = virtualWorld()
    const quick = workflow('quick', () => 'done')
    const holdfast = await open({ workflows: [quick] })
    await holdfast.work()
    const run = await holdfast.start(quick)
    await after(run.result())
    expect(await holdfast.cancel(run)).toEqual({ outcome: 'already-ended', status: 'succeeded' })
    expect(await holdfast.cancel(run, { mode: 'now' })).toEqual({ outcome: 'already-ended', status: 'succeeded' })
    expect(await run.result()).toBe('done')
    const nobody = '01890a5d-ac96-774b-bcce-b302099a8057'
    expect((await errorOf(holdfast.cancel(nobody))).code).toBe('RUN_NOT_FOUND')
  })
})

describe('a run that is being performed', () => {
  it('PQ-P1 finishes and records the step that it is in, begins no other, and is cancelled', async () => {
    const { open, until, after } = virtualWorld()
    const { passed, open: letGo } = gate()
    const begun: string[] = []
    let aborted: unknown = null
    const two = workflow('two', async (ctx) => {
      await ctx.step('first', async ({ abortSignal }) => {
        begun.push('first')
        abortSignal.addEventListener('abort', () => {
          aborted = abortSignal.reason
        })
        await passed
        return 'kept'
      })
      await ctx.step('second', () => void begun.push('second'))
    })
    const holdfast = await open({ workflows: [two] })
    await holdfast.work()
    const run = await holdfast.start(two)
    await until(() => begun.length === 1)
    expect(await run.cancel({ reason: 'enough' })).toEqual({ outcome: 'cancelling', status: 'cancelling' })
    expect(isHoldfastError(aborted, 'RUN_CANCELLED')).toBe(true)
    expect(await run.status()).toBe('cancelling')
    letGo()
    expect((await errorOf(after(run.result()))).message).toContain('enough')
    expect(begun).toEqual(['first'])
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'cancelled'])
  })

  it('PEERS 22 SW-P2 whatever its body returns or throws later, and the cancellation is no result of a step', async () => {
    for (const how of ['returns', 'throws'] as const) {
      const { open, until, after } = virtualWorld()
      const { passed, open: letGo } = gate()
      let isIn = false
      const body = workflow('body', async (ctx) => {
        await ctx
          .step('heeds', ({ abortSignal }) => {
            isIn = true
            return new Promise((_resolve, reject) =>
              abortSignal.addEventListener('abort', () => reject(new Error('stopped'))),
            )
          })
          .catch(() => undefined)
        await passed
        if (how === 'throws') throw new Error('too late')
        return 'too late'
      })
      const holdfast = await open({ workflows: [body] })
      await holdfast.work()
      const run = await holdfast.start(body)
      await until(() => isIn)
      await run.cancel()
      expect((await errorOf(after(run.result()))).code).toBe('RUN_CANCELLED')
      letGo()
      const kinds = await kindsOf(holdfast, run)
      expect(kinds).toEqual(['started', 'cancelled'])
      expect(await run.status()).toBe('cancelled')
    }
  })

  it('SW-A4 a body that works without steps can ask, and is notified by a signal', async () => {
    const { open, until, after, pause } = virtualWorld()
    const seen: unknown[] = []
    const loop = workflow('loop', async (ctx) => {
      ctx.abortSignal.addEventListener('abort', () => seen.push('signal'))
      while (!ctx.isCancelled()) await pause(1_000)
      seen.push('left')
    })
    const holdfast = await open({ workflows: [loop] })
    await holdfast.work()
    const run = await holdfast.start(loop)
    await run.cancel()
    expect((await errorOf(after(run.result()))).code).toBe('RUN_CANCELLED')
    await until(() => seen.length === 2)
    expect(seen).toEqual(['signal', 'left'])
  })

  it('elsewhere learns of it with its next heartbeat', async () => {
    const { open, until, after } = virtualWorld()
    let reason: unknown = null
    let isIn = false
    const slow = workflow('slow', (ctx) =>
      ctx.step('slow', ({ abortSignal }) => {
        isIn = true
        return new Promise((_resolve, reject) =>
          abortSignal.addEventListener('abort', () => {
            reason = abortSignal.reason
            reject(new Error('stopped'))
          }),
        )
      }),
    )
    const worker = await open({ workflows: [slow] })
    await worker.work()
    const operator = await open({ workflows: [slow] })
    const run = await operator.start(slow)
    await until(() => isIn)
    expect(await run.cancel()).toEqual({ outcome: 'cancelling', status: 'cancelling' })
    expect((await errorOf(after(run.result()))).code).toBe('RUN_CANCELLED')
    expect(isHoldfastError(reason, 'RUN_CANCELLED')).toBe(true)
  })

  it('and whose holder dies is ended by the worker that takes over', async () => {
    const { open, store, until, after } = virtualWorld()
    let isIn = false
    const stuck = workflow('stuck', (ctx) =>
      ctx.step('stuck', () => {
        isIn = true
        return new Promise(() => undefined)
      }),
    )
    const line = { isUp: true }
    const outbound = changed(store, {
      beat: (request) => (line.isUp ? store.beat(request) : new Promise(() => undefined)),
      commit: (batch) => (line.isUp ? store.commit(batch) : new Promise(() => undefined)),
    })
    const worker = await open({ store: outbound, workflows: [stuck] })
    await worker.work({ shutdownTimeout: 0 })
    const run = await worker.start(stuck)
    await until(() => isIn)
    line.isUp = false
    const operator = await open({ workflows: [stuck] })
    await operator.cancel(run, { reason: 'nobody there' })
    await operator.work()
    expect((await errorOf(after(operator.run(run).result()))).message).toContain('nobody there')
    expect(await kindsOf(operator, run)).toEqual(['started', 'crashed', 'cancelled'])
    line.isUp = true
  })
})

describe("mode: 'now'", () => {
  it('cancels at once, aborts the holder, and refuses whatever it still writes', async () => {
    const { open, until, after } = virtualWorld()
    const { passed, open: letGo } = gate()
    let aborted = false
    let isIn = false
    const deaf = workflow('deaf', async (ctx) => {
      await ctx.step('deaf', async ({ abortSignal }) => {
        isIn = true
        abortSignal.addEventListener('abort', () => (aborted = true))
        await passed
      })
    })
    const holdfast = await open({ workflows: [deaf] })
    await holdfast.work()
    const run = await holdfast.start(deaf)
    await until(() => isIn)
    expect(await run.cancel({ mode: 'now' })).toEqual({ outcome: 'cancelled', status: 'cancelled' })
    expect((await errorOf(after(run.result()))).code).toBe('RUN_CANCELLED')
    expect(aborted).toBe(true)
    letGo()
    await after(holdfast.close())
  })

  it('reaches a holder in another process with its next heartbeat', async () => {
    const { open, until } = virtualWorld()
    let signal: AbortSignal | null = null
    const deaf = workflow('deaf', (ctx) =>
      ctx.step('deaf', ({ abortSignal }) => {
        signal = abortSignal
        return new Promise(() => undefined)
      }),
    )
    const worker = await open({ workflows: [deaf] })
    await worker.work({ shutdownTimeout: 0 })
    const operator = await open({ workflows: [deaf] })
    const run = await operator.start(deaf)
    await until(() => signal !== null)
    await operator.cancel(run, { mode: 'now' })
    await until(() => signal?.aborted === true)
    expect(await kindsOf(operator, run)).toEqual(['started', 'cancelled'])
  })

  it('refuses a mode that it does not know', async () => {
    const { open } = virtualWorld()
    const holdfast = await open({ workflows: [idle] })
    const run = await holdfast.start(idle)
    const error = await errorOf(run.cancel({ mode: 'later' as 'now' }))
    expect([error.code, error.message]).toEqual([
      'INVALID_OPTION',
      `cancel({ mode }) is 'cooperative' or 'now'. Got "later".`,
    ])
  })
})
