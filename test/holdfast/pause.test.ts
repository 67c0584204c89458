// Stopping a run until an operator lets it go on, and letting a failed one go on.

import { describe, expect, it } from 'vitest'
import { workflow, type HoldfastError } from 'holdfast'
import { gate } from './gate.ts'
import { kindsOf, virtualWorld } from './virtual-world.ts'

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'done',
    (error: unknown) => (error as HoldfastError).code,
  )

const nap = workflow('nap', async (ctx) => {
  await ctx.sleep('1 min')
  return 'rested'
})

describe('pause', () => {
  it('stops a run that waits until it is resumed, and says why in its journal', async () => {
    const { open, clock, after } = virtualWorld()
    const holdfast = await open({ workflows: [nap] })
    await holdfast.work()
    const run = await holdfast.start(nap)
    await clock.advance('1s')
    expect(await holdfast.pause(run, { reason: 'maintenance', note: 'moving house' })).toEqual({
      outcome: 'paused',
      status: 'paused',
    })
    await clock.advance('1h')
    expect(await run.status()).toBe('paused')
    expect(await holdfast.resume(run, { note: 'moved' })).toEqual({ outcome: 'resumed', status: 'pending' })
    expect(await after(run.result())).toBe('rested')
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'waiting', 'paused', 'resumed', 'woken', 'succeeded'])
    const journal = await holdfast.journal(run)
    expect(journal[2]?.meta).toEqual({ reason: 'maintenance', note: 'moving house' })
    expect(journal[3]?.meta).toEqual({ note: 'moved' })
  })

  it('lets a step that is being performed end, and begins no other', async () => {
    const { open, until, after, clock } = virtualWorld()
    const { passed, open: letGo } = gate()
    const begun: string[] = []
    const two = workflow('two', async (ctx) => {
      const first = await ctx.step('first', async () => {
        begun.push('first')
        await passed
        return 1
      })
      return first + (await ctx.step('second', () => begun.push('second')))
    })
    const holdfast = await open({ workflows: [two] })
    await holdfast.work()
    const run = await holdfast.start(two)
    await until(() => begun.length === 1)
    expect(await holdfast.pause(run)).toEqual({ outcome: 'pausing', status: 'running' })
    expect((await holdfast.get(run)).controlRequest).toMatchObject({ kind: 'pause', reason: 'operator' })
    letGo()
    await clock.advance('1 min')
    expect(await run.status()).toBe('paused')
    expect(begun).toEqual(['first'])
    await holdfast.resume(run)
    expect(await after(run.result())).toBe(3)
    expect(await kindsOf(holdfast, run)).toEqual([
      'started',
      'step-succeeded',
      'paused',
      'resumed',
      'step-succeeded',
      'succeeded',
    ])
  })

  it('of a run that is resumed before it was obeyed never happens', async () => {
    const { open, until, after } = virtualWorld()
    const { passed, open: letGo } = gate()
    let isIn = false
    const slow = workflow('slow', (ctx) =>
      ctx.step('slow', async () => {
        isIn = true
        await passed
        return 'done'
      }),
    )
    const worker = await open({ workflows: [slow] })
    await worker.work()
    const operator = await open({ workflows: [slow] })
    const run = await operator.start(slow)
    await until(() => isIn)
    await operator.pause(run)
    await operator.resume(run)
    expect((await operator.get(run)).controlRequest).toBeNull()
    letGo()
    expect(await after(run.result())).toBe('done')
    expect(await kindsOf(operator, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('and resume and retry of a run that is not where they need it say what it is', async () => {
    const { open, after, clock } = virtualWorld()
    const quick = workflow('quick', () => 'done')
    const holdfast = await open({ workflows: [quick, nap] })
    await holdfast.work()
    const over = await holdfast.start(quick)
    await after(over.result())
    expect(await codeOf(holdfast.pause(over))).toBe('WRONG_STATUS')
    expect(await codeOf(holdfast.resume(over))).toBe('WRONG_STATUS')
    expect(await codeOf(holdfast.retry(over))).toBe('WRONG_STATUS')
    const live = await holdfast.start(nap)
    expect(await codeOf(holdfast.resume(live))).toBe('WRONG_STATUS')
    expect(await codeOf(holdfast.retry(live))).toBe('WRONG_STATUS')
    await holdfast.pause(live)
    await clock.advance('1s')
    expect(await holdfast.pause(live)).toEqual({ outcome: 'paused', status: 'paused' })
    expect(await codeOf(holdfast.pause(live, { reason: 'bored' as 'operator' }))).toBe('INVALID_OPTION')
    expect(await codeOf(holdfast.pause('01890a5d-ac96-774b-bcce-b302099a8057'))).toBe('RUN_NOT_FOUND')
  })
})

describe('retry', () => {
  it('performs the step again that failed, and nothing that succeeded', async () => {
    const { open, after } = virtualWorld()
    const done: string[] = []
    let isDown = true
    const order = workflow('order', { retry: { maxAttempts: 1 } }, async (ctx) => {
      await ctx.step('charge', () => void done.push('charge'))
      return ctx.step('ship', () => {
        if (isDown) throw new Error('No parcels today')
        return 'shipped'
      })
    })
    const holdfast = await open({ workflows: [order] })
    await holdfast.work()
    const run = await holdfast.start(order)
    await expect(after(run.result())).rejects.toThrow('No parcels today')
    expect((await holdfast.get(run)).lastError).toBe('Error: No parcels today')
    isDown = false
    expect(await holdfast.retry(run, { note: 'parcels again' })).toMatchObject({ outcome: 'retried' })
    expect(await after(run.result())).toBe('shipped')
    expect(done).toEqual(['charge'])
    expect(await kindsOf(holdfast, run)).toEqual([
      'started',
      'step-succeeded',
      'step-failed',
      'failed',
      'amended',
      'retried',
      'step-succeeded',
      'succeeded',
    ])
  })

  it('gives the body all its attempts again', async () => {
    const { open, after } = virtualWorld()
    let calls = 0
    const flaky = workflow('flaky', { retry: { maxAttempts: 2 } }, () => {
      calls += 1
      if (calls < 4) throw new Error(`call ${calls}`)
      return calls
    })
    const holdfast = await open({ workflows: [flaky] })
    await holdfast.work()
    const run = await holdfast.start(flaky)
    await expect(after(run.result())).rejects.toThrow('call 2')
    await holdfast.retry(run)
    expect(await after(run.result())).toBe(4)
  })

  it('of one whose key is taken is RUN_EXISTS, with the run that has it', async () => {
    const { open, after } = virtualWorld()
    const failing = workflow('failing', { retry: { maxAttempts: 1 } }, (_ctx, isLong: boolean) => {
      if (isLong) return new Promise(() => undefined)
      throw new Error('no')
    })
    const holdfast = await open({ workflows: [failing] })
    await holdfast.work({ shutdownTimeout: 0 })
    const run = await holdfast.start(failing, false, { key: 'a' })
    await expect(after(run.result())).rejects.toThrow('no')
    const other = await holdfast.start(failing, true, { key: 'a' })
    const error = await holdfast.retry(run).catch((reason: unknown) => reason as HoldfastError)
    expect(error).toMatchObject({ code: 'RUN_EXISTS', details: { runId: other.id } })
  })

  it('of one that was undone is refused: what it would build on is gone', async () => {
    const { open, after } = virtualWorld()
    const undone = workflow('undone', { retry: { maxAttempts: 1 } }, async (ctx) => {
      await ctx.step('charge', () => 1, { undo: () => undefined })
      throw new Error('no')
    })
    const holdfast = await open({ workflows: [undone] })
    await holdfast.work()
    const run = await holdfast.start(undone)
    await expect(after(run.result())).rejects.toThrow('no')
    const error = await holdfast.retry(run).catch((reason: unknown) => reason as HoldfastError)
    expect(error).toMatchObject({ code: 'WRONG_STATUS', details: { reason: 'undone' } })
  })
})

describe('a pause that is taken back before the holder obeys it', () => {
  /** A run in a step, a way to let that end, and a second process that controls it. */
  async function busyRun() {
    const { open, until, after, clock } = virtualWorld()
    const { passed, open: letGo } = gate()
    const begun: string[] = []
    const two = workflow('two', async (ctx) => {
      await ctx.step('first', () => {
        begun.push('first')
        return passed
      })
      await ctx.step('second', () => begun.push('second'))
      const { aborted } = ctx.abortSignal
      await ctx.receive('end')
      return aborted
    })
    const holdfast = await open({ workflows: [two] })
    const elsewhere = await open({ workflows: [two] })
    await holdfast.work()
    const run = await holdfast.start(two)
    await until(() => begun.length === 1)
    return { holdfast, elsewhere, run, letGo, begun, after, clock }
  }

  it.each(['in the same process', 'in another process'])('does not pause the run: %s', async (where) => {
    const { holdfast, elsewhere, run, letGo, begun, after, clock } = await busyRun()
    const steering = where === 'in the same process' ? holdfast : elsewhere
    expect(await holdfast.pause(run)).toMatchObject({ outcome: 'pausing' })
    expect(await steering.resume(run)).toMatchObject({ outcome: 'resumed', status: 'running' })
    letGo()
    await clock.advance('1s')
    expect([await run.status(), begun]).toEqual(['waiting', ['first', 'second']])
    await holdfast.signal(run, 'end')
    expect(await after(run.result())).toBe(false)
    expect(await kindsOf(holdfast, run)).not.toContain('paused')
  })

  it('does not keep it from being paused later', async () => {
    const { holdfast, elsewhere, run, letGo, begun, after, clock } = await busyRun()
    await holdfast.pause(run)
    await elsewhere.resume(run)
    await holdfast.pause(run, { note: 'again' })
    letGo()
    await clock.advance('1s')
    expect([await run.status(), begun]).toEqual(['paused', ['first']])
    await holdfast.resume(run)
    await clock.advance('1s')
    await holdfast.signal(run, 'end')
    expect(await after(run.result())).toBe(false)
    const journal = await holdfast.journal(run)
    expect(journal.filter(({ kind }) => kind === 'paused').map(({ meta }) => meta)).toMatchObject([{ note: 'again' }])
  })

  it('lets a body that failed be tried again when that is due', async () => {
    const { open, until, after, clock } = virtualWorld()
    const { passed, open: letGo } = gate()
    let bodies = 0
    const flaky = workflow('flaky', { retry: { maxAttempts: 2, kind: 'constant', initial: '1 min' } }, async () => {
      bodies += 1
      if (bodies > 1) return 'done'
      await passed
      throw new Error('not yet')
    })
    const holdfast = await open({ workflows: [flaky] })
    const elsewhere = await open({ workflows: [flaky] })
    await holdfast.work()
    const run = await holdfast.start(flaky)
    await until(() => bodies === 1)
    await holdfast.pause(run)
    await elsewhere.resume(run)
    letGo()
    await clock.advance('1s')
    expect([await run.status(), bodies]).toEqual(['pending', 1])
    expect(await after(run.result())).toBe('done')
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'attempt-failed', 'succeeded'])
  })
})
