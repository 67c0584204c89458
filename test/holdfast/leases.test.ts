// Who may move a run, and for how long: heartbeats, takeover, deadlines, poison. Seen through the public surface, with two
// workers on one store and a clock that the test owns.

import { describe, expect, it } from 'vitest'
import { HoldfastError, fatal, isHoldfastError, workflow } from 'holdfast'
import type { BeatRequest } from '../../src/store.ts'
import { keepLines, type Line } from './open.ts'
import { stuckOnce } from './stuck.ts'
import { abandon, changed, kindsOf, unreliable, virtualWorld } from './virtual-world.ts'

const causeOf = (result: Promise<unknown>): Promise<unknown> =>
  result.then(
    () => undefined,
    (error: unknown) => (error as Error).cause,
  )

describe('a worker whose heartbeats fail', () => {
  it('aborts its own work after a lease, and another one finishes the run', async () => {
    const { open, until, after, store } = virtualWorld()
    const logger = keepLines()
    const { stuck, signals, letGo } = stuckOnce()
    const { line, store: flaky } = unreliable(store)
    const first = await open({ store: flaky, workflows: [stuck], logger })
    await first.work()
    const run = await first.start(stuck)
    await until(() => signals.length === 1)
    line.isUp = false
    await until(() => signals[0]?.aborted === true)
    expect(isHoldfastError(signals[0]?.reason, 'LEASE_LOST')).toBe(true)
    expect(signals).toHaveLength(1)
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', details: { error: signals[0]?.reason as unknown, runs: 1 } }),
    )

    const second = await open({ workflows: [stuck] })
    await second.work()
    expect(await after(second.run(run).result())).toEqual(['kept', 'at time 2'])
    letGo()
    line.isUp = true
    const other = await first.start(stuck)
    expect(await after(other.result())).toEqual(['kept', 'at time 3'])
    const kinds = ['started', 'step-succeeded', 'crashed', 'step-succeeded', 'succeeded']
    expect(await kindsOf(second, run)).toEqual(kinds)
  })

  it('and who is alone takes its own runs over again when the store is back: nobody noticed that it gave up', async () => {
    const { open, until, after, store } = virtualWorld()
    const { stuck, signals } = stuckOnce()
    const { line, store: flaky } = unreliable(store)
    const only = await open({ store: flaky, workflows: [stuck] })
    await only.work()
    const run = await only.start(stuck)
    await until(() => signals.length === 1)
    line.isUp = false
    await until(() => signals[0]?.aborted === true)
    line.isUp = true
    expect(await after(run.result())).toEqual(['kept', 'at time 2'])
  })

  it('takes nothing new until one succeeds', async () => {
    const { open, after, clock, store } = virtualWorld()
    const quick = workflow('quick', () => 'done')
    const { line, store: flaky } = unreliable(store)
    const holdfast = await open({ store: flaky, workflows: [quick] })
    await holdfast.work()
    line.isUp = false
    await clock.advance('11s')
    const run = await holdfast.start(quick)
    await clock.advance('10s')
    expect(await run.status()).toBe('pending')
    line.isUp = true
    expect(await after(run.result())).toBe('done')
  })
})

describe('a takeover', () => {
  it('WC-O1: work() reports what it took over from workers that died, and no second one does', async () => {
    const { open, after, store } = virtualWorld()
    const quick = workflow('quick', (_ctx, name: string) => name)
    const starter = await open({ workflows: [quick] })
    const runs = [await starter.start(quick, 'a'), await starter.start(quick, 'b')]
    await abandon(store, 'dead', 'quick')

    const first = await open({ workflows: [quick] })
    expect((await first.work()).recovered).toEqual({ sessions: 1, runs: 2 })
    const second = await open({ workflows: [quick] })
    expect((await second.work()).recovered).toEqual({ sessions: 0, runs: 0 })
    expect(await after(Promise.all(runs.map((run) => run.result())))).toEqual(['a', 'b'])
  })

  it('of a hung step happens although its process lives, and the late result is refused and said in the log', async () => {
    const { open, until, after } = virtualWorld()
    const logger = keepLines()
    const { stuck, signals, letGo } = stuckOnce({ lease: '1min' })
    const first = await open({ workflows: [stuck], logger })
    await first.work({ concurrency: 1 })
    const run = await first.start(stuck)
    await until(() => signals.length === 1)
    const second = await open({ workflows: [stuck] })
    await second.work()
    expect(await after(second.run(run).result())).toEqual(['kept', 'at time 2'])
    const journal = await second.journal(run)

    const late = (): Line | undefined => logger.lines.find(({ message }) => message.includes('is no longer held here'))
    expect(late()).toBeUndefined()
    letGo()
    await until(() => late() !== undefined)
    expect(late()).toMatchObject({ level: 'warn', details: { run: run.id, error: { family: 'conflict' } } })
    expect(await second.journal(run)).toEqual(journal)
  })

  it('of a hung step asks that step to stop, although it never asks', async () => {
    const { open, until } = virtualWorld()
    const { stuck, signals } = stuckOnce({ lease: '1min' })
    const first = await open({ workflows: [stuck] })
    const worker = await first.work({ concurrency: 1 })
    await first.start(stuck)
    await until(() => signals.length === 1)
    const second = await open({ workflows: [stuck] })
    await second.work()
    await until(() => signals[0]?.aborted === true)
    expect(isHoldfastError(signals[0]?.reason, 'LEASE_LOST')).toBe(true)
    expect(signals).toHaveLength(2)
    // Its slot is free, so nothing is waited for.
    await worker.stop()
  })

  it('by the very worker in which the step hangs stops the old attempt, and its late result changes nothing', async () => {
    const { open, until, after } = virtualWorld()
    const { stuck, signals, letGo } = stuckOnce({ lease: '1min' })
    const only = await open({ workflows: [stuck] })
    const worker = await only.work({ concurrency: 2 })
    const run = await only.start(stuck)
    await until(() => signals.length === 2)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    letGo()
    expect(await after(run.result())).toEqual(['kept', 'at time 2'])
    expect(await kindsOf(only, run)).toEqual(['started', 'step-succeeded', 'crashed', 'step-succeeded', 'succeeded'])
    // Both have left, so nothing is waited for.
    await worker.stop()
  })
})

describe('step.heartbeat()', () => {
  it('prolongs the deadline of a workflow with a lease for as long as it is called', async () => {
    const { open, after, pause } = virtualWorld()
    let begun = 0
    const long = workflow('long', { lease: '1min' }, (ctx) =>
      ctx.step('work', async (step) => {
        begun += 1
        for (let half = 0; half < 20; half += 1) {
          await pause(30_000)
          step.heartbeat()
        }
        return 'after ten minutes'
      }),
    )
    const [first, second] = [await open({ workflows: [long] }), await open({ workflows: [long] })]
    await first.work()
    await second.work()
    const run = await first.start(long)
    expect(await after(run.result())).toBe('after ten minutes')
    expect(begun).toBe(1)
    expect(await kindsOf(first, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('keeps the claim of a run that fails for as long as it waits for a step that was asked to stop', async () => {
    const { open, after, pause } = virtualWorld()
    const beats = { accepted: 0, refused: 0 }
    const failing = workflow('failing', { lease: '5s' }, (ctx) =>
      Promise.all([
        ctx.step('slow', async (step) => {
          for (let second = 0; second < 25; second += 1) {
            await pause(1_000)
            try {
              step.heartbeat()
              beats.accepted += 1
            } catch {
              beats.refused += 1
            }
          }
        }),
        ctx.step('hotel', () => Promise.reject(fatal('no room'))),
      ]),
    )
    const [first, second] = [await open({ workflows: [failing] }), await open({ workflows: [failing] })]
    await first.work()
    await second.work()
    const run = await first.start(failing)
    await expect(after(run.result())).rejects.toMatchObject({ code: 'RUN_FAILED' })
    expect(beats).toEqual({ accepted: 0, refused: 25 })
    expect(await kindsOf(first, run)).toEqual(['started', 'step-failed', 'step-succeeded', 'failed'])
  })

  it('arrives with the next heartbeat if the one that should bring it fails', async () => {
    const { open, after, pause, store } = virtualWorld()
    // The first beat that would move a deadline never arrives.
    const faults = { left: 1 }
    const failing = new Proxy(store, {
      get(target, name): unknown {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...request: unknown[]): unknown => {
          const { held = [] } = (name === 'beat' ? request[0] : {}) as Partial<BeatRequest>
          if (faults.left === 0 || !held.some(({ extendMs }) => extendMs !== null)) return member.apply(target, request)
          faults.left -= 1
          return Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'Away for a moment.'))
        }
      },
    })
    let begun = 0
    const long = workflow('long', { lease: '1min' }, (ctx) =>
      ctx.step('work', async (step) => {
        begun += 1
        await pause(45_000)
        step.heartbeat()
        await pause(50_000)
        return 'done'
      }),
    )
    const first = await open({ workflows: [long], store: failing })
    await first.work()
    const run = await first.start(long)
    expect(await after(run.result())).toBe('done')
    expect([begun, faults.left]).toEqual([1, 0])
    expect(await kindsOf(first, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('throws once the claim was lost, so that a slow step learns that it works for nobody', async () => {
    const { open, until, after, pause } = virtualWorld()
    const thrown: unknown[] = []
    let begun = 0
    const slow = workflow('slow', { lease: '1min' }, (ctx) =>
      ctx.step('work', async (step) => {
        begun += 1
        if (begun > 1) return 'elsewhere'
        await pause(10 * 60_000)
        try {
          for (;;) {
            step.heartbeat()
            await pause(1_000)
          }
        } catch (error) {
          thrown.push(error)
          throw error
        }
      }),
    )
    const first = await open({ workflows: [slow] })
    await first.work({ concurrency: 1 })
    const run = await first.start(slow)
    await until(() => begun === 1)
    const second = await open({ workflows: [slow] })
    await second.work()
    expect(await after(second.run(run).result())).toBe('elsewhere')
    await until(() => thrown.length > 0)
    expect(isHoldfastError(thrown[0], 'LEASE_LOST')).toBe(true)
    expect(await kindsOf(second, run)).toEqual(['started', 'crashed', 'step-succeeded', 'succeeded'])
  })
})

describe('a run that takes longer than its start allowed', () => {
  it('fails while it waits', async () => {
    const { open, after } = virtualWorld()
    const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('1 day')))
    const holdfast = await open({ workflows: [sleeper] })
    await holdfast.work()
    const run = await holdfast.start(sleeper, undefined, { timeout: '1min' })
    expect(isHoldfastError(await after(causeOf(run.result())), 'RUN_TIMEOUT')).toBe(true)
    expect(await run.status()).toBe('failed')
  })

  it('fails while it is moving, and its step is asked to stop', async () => {
    const { open, after } = virtualWorld()
    const { stuck, signals, letGo } = stuckOnce()
    const holdfast = await open({ workflows: [stuck] })
    const worker = await holdfast.work()
    const run = await holdfast.start(stuck, undefined, { timeout: '1min' })
    expect(isHoldfastError(await after(causeOf(run.result())), 'RUN_TIMEOUT')).toBe(true)
    expect(isHoldfastError(signals[0]?.reason, 'RUN_TIMEOUT')).toBe(true)
    letGo()
    await worker.stop()
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'abandoned', 'failed'])
  })

  it('fails although something of it was on its way to the store at that moment', async () => {
    const { open, after, store, pause } = virtualWorld()
    const slowStore = changed(store, {
      async commit(transitions) {
        if (transitions.some(({ append }) => append.some(({ kind }) => kind === 'step-succeeded'))) await pause(12_000)
        return store.commit(transitions)
      },
    })
    const { stuck } = stuckOnce()
    const holdfast = await open({ store: slowStore, workflows: [stuck] })
    await holdfast.work()
    const run = await holdfast.start(stuck, undefined, { timeout: '10s' })
    expect(isHoldfastError(await after(causeOf(run.result())), 'RUN_TIMEOUT')).toBe(true)
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'failed'])
  })

  it('fails unbegun when it expires, and is not begun afterwards', async () => {
    const { open, after } = virtualWorld()
    let begun = 0
    const late = workflow('late', () => void (begun += 1))
    const starter = await open({ workflows: [late] })
    const run = await starter.start(late, undefined, { expiresIn: '1min' })
    const other = await open()
    await other.work()
    expect(isHoldfastError(await after(causeOf(run.result())), 'RUN_EXPIRED')).toBe(true)
    await starter.work()
    expect([begun, await run.status()]).toEqual([0, 'failed'])
  })

  it('that was begun before it expired goes on', async () => {
    const { open, after, pause } = virtualWorld()
    const slow = workflow('slow', (ctx) => ctx.step('work', () => pause(600_000).then(() => 'done')))
    const holdfast = await open({ workflows: [slow] })
    await holdfast.work()
    const run = await holdfast.start(slow, undefined, { expiresIn: '1min' })
    expect(await after(run.result())).toBe('done')
  })
})

describe('a run that may have ended its process', () => {
  it.each([
    ['before others that were claimed with it', 1],
    ['after others that were claimed with it', -1],
  ])('is performed alone, %s', async (_when, priority) => {
    const { open, until, after, store, pause } = virtualWorld()
    const moving = new Set<string>()
    const besides: string[][] = []
    const work = workflow('work', (ctx, name: string) =>
      ctx.step('work', async () => {
        moving.add(name)
        await pause(1_000)
        if (name === 'poison') besides.push([...moving])
        moving.delete(name)
      }),
    )
    const starter = await open({ workflows: [work] })
    const poison = await starter.start(work, 'poison', { priority })
    await abandon(store, 'dead', 'work')
    await store.rescue({ limit: 1, maxCrashes: 5, failures: { crashed: '', 'timed-out': '', expired: '' } })
    await abandon(store, 'dead, too', 'work')
    const others = [await starter.start(work, 'a'), await starter.start(work, 'b'), await starter.start(work, 'c')]

    const holdfast = await open({ workflows: [work] })
    await holdfast.work({ concurrency: 10 })
    await until(() => moving.has('poison'))
    others.push(await holdfast.start(work, 'started meanwhile'))
    await after(Promise.all([poison, ...others].map((run) => run.result())))
    expect(besides).toEqual([['poison']])
  })
})
