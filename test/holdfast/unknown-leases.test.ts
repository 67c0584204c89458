// Runs that were leased by a call whose answer never came: nobody here knows of them, and nobody else may take them.

import { describe, expect, it } from 'vitest'
import { HoldfastError, workflow, type Workflow } from 'holdfast'
import { keepLines } from './open.ts'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

const quick = workflow('quick', (ctx, n: number) => ctx.step('count', () => n))

describe('a run that was leased without an answer', () => {
  it('by a claim is given back and performed within a few heartbeats, by the same process', async () => {
    const { open, store, after } = virtualWorld()
    let isLost = true
    const outbound = changed(store, {
      claim: async (request) => {
        const claimed = await store.claim(request)
        if (claimed.runs.length === 0 || !isLost) return claimed
        isLost = false
        throw new HoldfastError('STORE_UNAVAILABLE', 'The answer was lost on its way.')
      },
    })
    const starter = await open({ workflows: [quick] })
    const run = await starter.start(quick, 7)
    const worker = await open({ store: outbound, workflows: [quick] })
    await worker.work()
    expect(await after(run.result({ timeout: '1 min' }))).toBe(7)
    expect(isLost).toBe(false)
    expect(await kindsOf(starter, run)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it('by a start is given back and performed, too', async () => {
    const { open, store, after } = virtualWorld()
    let isLost = true
    const outbound = changed(store, {
      start: async (runs) => {
        const started = await store.start(runs)
        if (!isLost) return started
        isLost = false
        throw new TypeError('The driver broke on the answer.')
      },
    })
    const worker = await open({ store: outbound, workflows: [quick] })
    await worker.work()
    await after(worker.start(quick, 7, { key: 'a' }).catch(() => undefined))
    const reader = await open({ workflows: [quick] })
    const { runs } = await reader.find({ key: 'a' })
    expect(await after(reader.run(runs[0]?.id ?? '').result({ timeout: '1 min' }))).toBe(7)
  })

  /** A worker whose claim is answered after another worker has had the run for long. */
  async function answeredLate(kind: string, isCutOffMeanwhile: boolean): Promise<number> {
    const { open, store, after, until, pause } = virtualWorld()
    const isNew = kind === 'new'
    let isSlow = isNew
    let isUnderway = false
    let isCutOff = false
    let begun = 0
    const counted = workflow('counted', async (ctx) => {
      await ctx.sleep(isNew ? 0 : '1 min')
      return ctx.step('count', async () => {
        begun += 1
        await pause(120_000)
        return begun
      })
    })
    const away = new HoldfastError('STORE_UNAVAILABLE', 'The store cannot be reached.')
    const outbound = changed(store, {
      beat: (request) => (isCutOff ? Promise.reject(away) : store.beat(request)),
      claim: async (request) => {
        const claimed = await store.claim(request)
        if (claimed.runs.length === 0 || !isSlow) return claimed
        isSlow = false
        isUnderway = true
        isCutOff = isCutOffMeanwhile
        await pause(40_000)
        // Its heartbeats get through again, as a new session, before the answer does.
        isCutOff = false
        await pause(5_000)
        return claimed
      },
    })
    const slow = await open({ store: outbound, workflows: [counted] })
    await slow.work()
    const starter = await open({ workflows: [counted] })
    const run = await starter.start(counted)
    if (!isNew) {
      await after(pause(30_000))
      expect(slow.active(run)?.state).toBe('parked')
      isSlow = true
    }
    await until(() => isUnderway)
    const quick = await open({ workflows: [counted] })
    await quick.work()
    expect(await after(run.result())).toBe(1)
    return begun
  }

  it.each(['new', 'waiting'])('and given back is not begun when the answer comes, be it %s here', async (kind) => {
    expect(await answeredLate(kind, false)).toBe(1)
  })

  it.each(['new', 'waiting'])('and lost with its session is not begun, whether it is %s here', async (kind) => {
    expect(await answeredLate(kind, true)).toBe(1)
  })

  it('is none that begins anew: between two rounds it is known all the time', async () => {
    const { open, store, after } = virtualWorld()
    const outbound = changed(store, {
      // A run that looks into the mailbox waits for ever.
      load: (requests) =>
        requests.some(({ limit }) => limit === 0) ? new Promise(() => undefined) : store.load(requests),
    })
    const loop: Workflow<number, number> = workflow('loop', async (ctx, n: number): Promise<number> => {
      await ctx.sleep('1 min')
      return n < 3 ? ctx.continueAsNew(n + 1) : n
    })
    const logger = keepLines()
    const holdfast = await open({ store: outbound, workflows: [loop], logger })
    await holdfast.work()
    const run = await holdfast.start(loop, 1)
    await store.deliver([{ id: 'm', runId: run.id, kind: 'signal', name: 'hello', data: '1', policy: null }])
    expect(await after(run.result())).toBe(3)
    expect(logger.lines).toEqual([])
  })
})
